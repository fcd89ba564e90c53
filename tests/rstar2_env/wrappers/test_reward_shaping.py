"""Rewards made of named parts: weights, gates, clips, each logged apart."""

import pytest
from wrapper_env import answer, call, make, right

from rstar2_env.core.errors import ConfigurationError
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
        ({"components": [5]}, "A reward component.*not 5"),
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
    with pytest.raises(ConfigurationError, match=r"'asks' is a coroutine, which only a trainer awaits"):
        play(RewardShaping(make(), [asks]), right)


def test_a_part_that_has_nothing_to_score_is_left_out():
    env = RewardShaping(make("x"), [Component("nothing", lambda episode, ctx: None), Component("turns", turns)])
    _, reward, *_, info = play(env, right)
    assert info["reward_components"] == {"task": 1.0, "turns": 1.0}
    assert reward == 2.0


def test_a_part_is_told_the_info_of_the_last_step():
    env = RewardShaping(make("x"), [Component("end", lambda episode, ctx: ctx.info["end"] == "answered")])
    assert play(env, right)[4]["reward_components"]["end"] == 1.0
