"""The step judge ``model``, over a real server on loopback: what it asks, what it reads, what failures do."""

from __future__ import annotations

import pickle

import pytest
from credit import Said, advantages, episode
from flaky_server import flaky

from rstar2_env.core.episode import Message
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.parts import make_part
from rstar2_env.trainers.advantages.model_judge import StepModelJudge, transcript, wrong_steps
from rstar2_env.trainers.advantages.step_judges import STEP_JUDGES


def attempt(reward=1.0):
    made = episode(Said(2, 1), Said(3, 1), Said(1, 0, reward))
    said = ["first try", "second try", "answer 42"]
    made.messages = [Message("system", "You may call tools."), Message("user", "6 times 7?")]
    for place, text in enumerate(said):
        made.messages += [Message("assistant", text), Message("user", f"shown {place}")][: 1 + (place < 2)]
    return made


def says(*replies):
    """A server whose answers are these, in turn; a number is the status of a failure."""

    def answer(asked, number):
        reply = replies[number % len(replies)]
        if isinstance(reply, int):
            return reply, {"error": "no"}
        return 200, {"choices": [{"message": {"role": "assistant", "content": reply}}]}

    return flaky(answer)


@pytest.mark.parametrize(
    ("reply", "steps"),
    [
        ("The second step divides by zero. [2]", [2]),
        ("Steps [1, 2] look odd, but only the last is wrong: [3]", [3]),
        ("[3, 1, 3]", [1, 3]),
        ("[]", []),
        ("[0, 2]", [2]),
        ("all good", None),
        ("[,]", None),
    ],
)
def test_the_last_list_of_a_reply_names_the_wrong_steps(reply, steps):
    assert wrong_steps(reply) == steps


def test_the_episode_is_shown_as_numbered_steps_between_marks_that_differ_each_time():
    shown = transcript(attempt())
    parts = ["PROBLEM", "6 times 7?", "STEP 1", "first try", "RESULT", "shown 0", "STEP 3", "answer 42"]
    assert [shown.index(part) for part in parts] == sorted(shown.index(part) for part in parts)
    assert "You may call tools" not in shown
    assert shown != transcript(attempt())


def test_it_is_asked_as_often_as_it_is_told_and_its_steps_are_turns():
    with says("[2]", "fine: []", "nothing to say", "[2, 9]") as server:
        judge = make_part(STEP_JUDGES, f"model:url={server.address}/v1,model=big,critiques=4,temperature=0.5")
        found = judge(attempt())
        assert sorted(map(tuple, found)) == [(), ((3, 6),), ((3, 6),)]
        assert len(server.asked) == 4
        body = server.asked[0].body
        assert (body["model"], body["temperature"]) == ("big", 0.5)
        assert "second try" in body["messages"][1]["content"]


def test_requests_that_fail_are_no_critiques(caplog):
    with says(400) as server:
        assert StepModelJudge(f"{server.address}/v1", "big", critiques=2)(attempt()) == []
    assert "did not return a critique" in caplog.text


def test_capo_learns_from_what_it_says():
    with says("[2]") as server:
        part = f"capo:judge=(model:url={server.address}/v1,model=big,critiques=2,workers=3)"
        values = advantages(part, [attempt(1.0), attempt(0.0), attempt(1.0)])[0]
        assert len(server.asked) == 6
    for own in values:
        assert own[0] > own[3]
    assert values[0][0] > values[1][0]


def test_it_goes_into_other_processes_and_refuses_what_cannot_work(monkeypatch):
    judge = StepModelJudge("http://127.0.0.1:1/v1", "big", api_key_env="")
    assert pickle.loads(pickle.dumps(judge)) == judge
    with pytest.raises(ConfigurationError, match="url must be an address"):
        StepModelJudge("nowhere", "big")
    monkeypatch.delenv("STEP_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="variable STEP_KEY, which is not set"):
        StepModelJudge("http://127.0.0.1:1/v1", "big", api_key_env="STEP_KEY")
    with pytest.raises(ConfigurationError, match="model"):
        make_part(STEP_JUDGES, "model:url=http://127.0.0.1:1/v1")


def test_steps_are_numbered_from_one_to_the_last_and_numbers_beyond_are_ignored(monkeypatch):
    monkeypatch.setattr(StepModelJudge, "_critique", lambda self, content: "[1, 3, 4]")
    judge = StepModelJudge(url="http://127.0.0.1:9/v1", model="m", critiques=2)
    assert judge(attempt()) == [[(0, 2), (7, 8)]] * 2
