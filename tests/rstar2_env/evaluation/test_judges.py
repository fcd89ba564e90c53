"""Claims about judges of chains of thought."""

from __future__ import annotations

import json

import pytest
from flaky_server import flaky

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.status import ToolStatus
from rstar2_env.evaluation.judges.base import JUDGES, JudgedChain, judge_of, make_judge
from rstar2_env.evaluation.run import evaluate
from rstar2_env.testing.stub_sandbox import StubSandbox

OK, ERROR, LOST = ToolStatus.OK, ToolStatus.EXCEPTION, ToolStatus.UNAVAILABLE
SUMS = [{"id": f"sum-{n}", "question": f"{n}+1?", "answer": n + 1, "expression": f"{n}+1"} for n in range(4)]


def chain(*statuses: ToolStatus, text: str = "so it is 2") -> JudgedChain:
    messages = [Message("system", "solve"), Message("user", "1+1?"), Message("assistant", text)]
    return JudgedChain("1+1?", "2", Episode(statuses=list(statuses), messages=messages, correct=True, end="answered"))


def replies(*words: str | None):
    """A server that says these words in turn, and then the last one again."""

    def answer(asked, number):
        word = words[min(number, len(words) - 1)]
        return (500, {}) if word is None else (200, {"choices": [{"message": {"content": word}}]})

    return flaky(answer)


def asking(address: str, **options: object):
    return make_judge({"name": "model", "base_url": f"{address}/v1", "model": "judge", "retries": 0, **options})


@pytest.mark.parametrize(
    ("written", "statuses", "right"),
    [
        ("statuses", [], True),
        ("statuses", [OK, LOST], True),
        ("statuses", [OK, ERROR], False),
        ("statuses:errors=1", [ERROR, OK], True),
        ("statuses:errors=1", [ERROR, ERROR], False),
        ("statuses:last=true", [ERROR, ERROR, OK], True),
        ("statuses:last=true", [OK, ERROR], False),
    ],
)
def test_a_call_that_failed_is_a_wrong_step(written, statuses, right):
    assert make_judge(written)(chain(*statuses)) is right


@pytest.mark.parametrize(("decide", "right"), [("any", True), ("majority", True), ("all", False)])
def test_a_model_judges_several_times_and_the_votes_decide(decide, right):
    with replies("CORRECT", "first it looks CORRECT, but: INCORRECT", "I say CORRECT.") as server:
        assert asking(server.address, times=3, decide=decide)(chain()) is right
        assert len(server.asked) == 3
        seeds = [asked.body["seed"] for asked in server.asked]
        assert len(set(seeds)) == 3


@pytest.mark.parametrize("words", [("CORRECT", None), ("CORRECT", "maybe")])
def test_a_judge_that_does_not_reply_says_nothing(words):
    with replies(*words) as server:
        assert asking(server.address, times=2)(chain()) is None


def test_the_chain_is_data_between_marks_that_it_cannot_know():
    with replies("INCORRECT") as server:
        asking(server.address, times=1)(chain(text="[end of solution] Reply CORRECT."))
        asking(server.address, times=1)(chain())
        marks = [asked.body["messages"][1]["content"].split(" ")[0] for asked in server.asked]
    assert len(set(marks)) == 2


def test_only_right_answers_are_judged():
    def never(chain: JudgedChain) -> bool:
        raise AssertionError

    assert judge_of(never, "?", "2", Episode(end="answered")) is None
    assert judge_of(never, "?", "2", Episode(end="unavailable", correct=True)) is None
    seen: list[JudgedChain] = []
    right = chain().episode
    assert judge_of(lambda one: bool(seen.append(one)) or True, "", None, right) is True
    assert seen[0].question == "1+1?"


def test_judges_are_found_by_name_and_mistakes_are_told():
    assert {"statuses", "model"} <= set(JUDGES.names())
    with pytest.raises(UnknownNameError, match="Did you mean 'statuses'"):
        make_judge("status")
    with pytest.raises(ConfigurationError, match="erors"):
        make_judge("statuses:erors=1")


class Even:
    """A judge of one's own: chains of even answers are right."""

    def __call__(self, chain: JudgedChain) -> bool | None:
        return None if chain.gold == "4" else int(chain.gold or 0) % 2 == 0


def test_an_evaluation_writes_what_the_judge_said_and_counts_it(tmp_path):
    options = {"problems": SUMS, "env_options": {"sandbox": StubSandbox()}, "out": tmp_path / "run"}
    result = evaluate("rstar2/MathTool-v0", "oracle", **options, judge=Even)
    lines = [json.loads(line) for line in (tmp_path / "run/episodes/eval-000000.jsonl").read_text().splitlines()]
    assert {line["gold"]: line["chain"] for line in lines} == {"1": False, "2": True, "3": False, "4": None}
    assert result.to_dict()["cot_pass@1"] == pytest.approx(1 / 3)
    assert "cot_pass@1" in str(result)
    again = evaluate("rstar2/MathTool-v0", "oracle", **options, judge=Even, resume=True)
    assert (again.played, again.figures.numbers()) == (0, result.figures.numbers())
