"""Rewards made of named parts: weights, gates, clips, each logged apart."""

import pickle

import pytest
from chat_replies import said
from flaky_server import flaky
from wrapper_env import answer, call, make, right

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError, EpisodeOverError, ServiceError
from rstar2_env.core.status import ToolStatus
from rstar2_env.rewards import Component
from rstar2_env.wrappers import RewardShaping, UnaryFeedback


def turns(episode, ctx):
    return episode.turns


def play(env, *script, seed=1):
    env.reset(seed=seed)
    for turn in script:
        step = env.step(turn(env) if callable(turn) else turn)
    return step


def test_the_reward_is_the_weighted_sum_and_each_part_is_logged():
    env = RewardShaping(make("x"), [Component("turns", turns, weight=0.1)], task_weight=2.0)
    _, reward, *_, info = play(env, call(), right)
    assert info["reward_components"] == {"task": 2.0, "turns": 0.2}
    assert reward == pytest.approx(2.2)


@pytest.mark.parametrize(
    ("gate", "when_right", "when_wrong"),
    [
        ("always", 1.0, 1.0),
        ("correct", 1.0, 0.0),
        ("wrong", 0.0, 1.0),
        (lambda episode, ctx: episode.tool_calls > 0, 0.0, 0.0),
    ],
)
def test_a_part_counts_only_behind_its_open_gate(gate, when_right, when_wrong):
    env = RewardShaping(make("x"), [Component("turns", turns, gate=gate)])
    assert play(env, right)[4]["reward_components"]["turns"] == when_right
    assert play(env, answer("wrong"))[4]["reward_components"]["turns"] == when_wrong


def test_a_part_is_clipped_before_its_weight_and_the_sum_after():
    env = RewardShaping(make("x"), [Component("turns", turns, weight=0.5, clip=(0, 2))], clip=(0, 1.5))
    _, reward, *_, info = play(env, call(), call(), right)
    assert info["reward_components"] == {"task": 1.0, "turns": 1.0}
    assert reward == 1.5


def test_a_part_paid_by_the_step_is_paid_at_every_turn():
    env = RewardShaping(make("x"), [Component("turns", turns, when="step")])
    env.reset(seed=1)
    assert [env.step(call())[1] for _ in range(3)] == [1.0, 2.0, 3.0]


def test_the_parts_that_an_environment_logs_itself_are_kept():
    env = RewardShaping(UnaryFeedback(make()), [Component("turns", turns, weight=0.1)])
    _, reward, *_, info = play(env, answer("wrong"), right)
    parts = info["reward_components"]
    assert parts == {"task": 0.5, "turns": 0.2, "task/success": 0.5, "task/repetition": 0.0}
    assert reward == pytest.approx(0.7)


def test_an_unavailable_episode_stays_at_nought():
    env = RewardShaping(make(ToolStatus.UNAVAILABLE), [Component("turns", turns)])
    _, reward, *_, info = play(env, call())
    assert reward == 0.0
    assert info["reward_components"] == {"task": 0.0, "turns": 0.0}


def test_a_score_that_is_no_number_is_refused():
    env = RewardShaping(make(), [Component("nan", lambda episode, ctx: float("nan"))])
    with pytest.raises(ConfigurationError, match="'nan'"):
        play(env, "no")


@pytest.mark.parametrize(
    "options",
    [
        {"components": [Component("a", turns), Component("a", turns)]},
        {"components": [Component("task", turns)]},
        {"components": [Component("a", turns, gate="maybe")]},
        {"components": [Component("a", turns, when="never")]},
        {"components": [], "clip": (1, 0)},
    ],
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ConfigurationError):
        RewardShaping(make(), **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"components": turns}, r"list of reward components.*not <function turns.*RewardShaping\(env, \[component\]\)"),
        ({"components": Component("a", turns)}, "list of reward components"),
        ({"components": None}, "list of reward components.*not None"),
        ({"components": [5]}, "A reward component.*got 5"),
        ({"components": [Component("a", 5)]}, "score of 'a' must be a function.*not 5"),
        ({"components": [Component("a", turns, clip=3)]}, r"pair of numbers \(lowest, highest\), not 3"),
        ({"components": [], "clip": ("low", "high")}, "pair of numbers"),
    ],
)
def test_something_else_than_components_is_told_with_what_was_expected(options, words):
    with pytest.raises(ConfigurationError, match=words):
        RewardShaping(make(), **options)


def test_a_plain_function_is_a_component():
    env = RewardShaping(make(), [turns])
    env.reset(seed=1)
    *_, info = env.step(right(env))
    assert info["reward_components"]["turns"] == 1


class OfTheGroup:
    needs = frozenset({"group"})

    def __call__(self, episode, ctx):
        return len(ctx.group)


async def asks(episode, ctx):
    return 1.0


def test_a_part_that_needs_more_than_the_episode_is_refused_with_the_reason():
    with pytest.raises(ConfigurationError, match=r"'OfTheGroup' needs the other episodes.*rewards of a trainer"):
        RewardShaping(make(), [OfTheGroup()])


def test_a_part_may_be_a_coroutine():
    assert play(RewardShaping(make("x"), [asks]), right)[4]["reward_components"]["asks"] == 1.0


JUDGED = "model_verifier:judge=(model:url={}/v1,model=small,retries=0)"


def test_a_judge_behind_an_endpoint_is_asked_and_pays():
    def answered(asked, number):
        return 200, said("CORRECT" if "REFERENCE>\n2\n" in asked.body["messages"][0]["content"] else "INCORRECT")

    with flaky(answered) as server:
        env = RewardShaping(make("x"), JUDGED.format(server.address), task_weight=0.0)
        found = {}
        for problem in ("p1", "p2"):
            env.reset(seed=1, options={"problem_id": problem})
            _, reward, terminated, truncated, info = env.step(answer("7"))
            found[problem] = reward
            assert (terminated, truncated, info["reward_components"]["model_verifier"]) == (True, False, reward)
        assert found == {"p1": 1.0, "p2": 0.0}
        assert [asked.body["model"] for asked in server.asked] == ["small"] * 2
        again = pickle.loads(pickle.dumps(env))
        again.reset(seed=1, options={"problem_id": "p1"})
        assert again.step(answer("7"))[1] == 1.0


@pytest.mark.parametrize("when", ["end", "step"])
def test_an_episode_whose_judge_does_not_answer_is_unavailable_and_says_why(when, caplog):
    with flaky(lambda asked, number: (503, {"error": "down"})) as server:
        env = RewardShaping(make("x"), f"{JUDGED.format(server.address)},when={when},missing=0")
        env.reset(seed=1)
        if when == "step":
            assert env.step(call())[1:4] == (0.0, False, False)  # nobody is asked about no answer
        episode = Episode().begin(*env.reset(seed=1))
        step = env.step(answer("7"))
    assert step[:4] == ("", 0.0, False, True)
    assert step[4]["end"] == "unavailable"
    assert "503" in step[4]["error"]
    assert step[4]["reward_components"] == {"task": 0.0, "model_verifier": 0.0}
    assert episode.step(answer("7"), step)
    assert (episode.failed, episode.correct) == (True, False)
    assert "503" in episode.error
    assert "left out of the metrics" in caplog.text
    with pytest.raises(EpisodeOverError, match=r"reset\(\)"):
        env.step(answer("7"))
    env.reset(seed=1)
    env.step(call())


def test_a_judge_that_fails_in_the_middle_ends_the_episode_there_with_all_that_an_end_says():
    class Judged:
        async def __call__(self, episode, ctx):
            raise ServiceError("Nobody is there.")

    env = RewardShaping(make("x"), [Component("judged", Judged(), when="step")])
    env.reset(seed=1)
    text, reward, terminated, truncated, info = env.step(call())
    assert (text, reward, terminated, truncated) == ("", 0.0, False, True)
    assert (info["turns"], info["tool_errors"], info["tool_calls_total"], info["answer_tags"]) == (1, 0, 1, 0)
    assert (info["answer"], info["correct"], info["error"]) == (None, False, "Nobody is there.")


def test_a_part_that_has_nothing_to_score_is_left_out():
    env = RewardShaping(make("x"), [Component("nothing", lambda episode, ctx: None), Component("turns", turns)])
    _, reward, *_, info = play(env, right)
    assert info["reward_components"] == {"task": 1.0, "turns": 1.0}
    assert reward == 2.0


def test_a_part_is_told_the_info_of_the_last_step():
    env = RewardShaping(make("x"), [Component("end", lambda episode, ctx: ctx.info["end"] == "answered")])
    assert play(env, right)[4]["reward_components"]["end"] == 1.0
