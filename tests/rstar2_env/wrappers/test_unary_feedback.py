"""Feedback after a wrong answer, halving rewards, and a penalty on repetition (arXiv 2507.14295)."""

import pytest
from wrapper_env import answer, call, make, right

from rstar2_env.core.errors import ConfigurationError, EpisodeOverError
from rstar2_env.core.status import ToolStatus
from rstar2_env.wrappers import UnaryFeedback


@pytest.mark.parametrize(("wrong", "reward"), [(0, 1), (1, 0.5), (2, 0.25), (3, 0.125)])
def test_success_at_attempt_t_earns_two_to_the_minus_t(wrong, reward):
    env = UnaryFeedback(make(), penalty=0)
    env.reset(seed=1)
    for number in range(wrong):
        text, earned, terminated, truncated, info = env.step(answer(-number - 1))
        assert "not right" in text
        assert (earned, terminated, truncated) == (0.0, False, False)
        assert not {"end", "verdict"} & set(info)
    _, earned, terminated, _, info = env.step(right(env))
    assert (earned, terminated, info["correct"], info["attempts"]) == (reward, True, True, wrong + 1)
    assert info["turns"] == wrong + 1
    assert info["verdict"]["reason"] == "equal"


def play(env, *turns):
    env.reset(seed=1)
    for turn in turns:
        step = env.step(turn)
    return step


def test_repeated_answers_cost_a_quarter_for_two_distinct_ones_of_four():
    _, reward, *_, info = play(UnaryFeedback(make(), 4), *map(answer, ["a", "A ", "b", "a"]))
    assert reward == -0.25
    assert info["reward_components"] == {"success": 0.0, "repetition": -0.25}


def test_the_penalty_is_taken_from_a_success_too():
    env = UnaryFeedback(make())
    env.reset(seed=1)
    env.step(answer("x"))
    env.step(answer("x"))
    _, reward, *_ = env.step(right(env))
    assert reward == pytest.approx(0.25 - 0.5 * (1 - 2 / 3))


def test_an_attempt_without_an_answer_is_wrong_and_no_part_of_the_penalty():
    _, reward, terminated, _, info = play(UnaryFeedback(make(), 3), "hm", "hm", "hm")
    assert (reward, terminated, info["end"], info["attempts"]) == (0.0, True, "no_answer", 3)


def test_the_last_wrong_attempt_ends_the_episode():
    env = UnaryFeedback(make(), 2)
    _, _, terminated, _, info = play(env, answer("x"), answer("y"))
    assert terminated
    assert info["end"] == "answered"
    with pytest.raises(EpisodeOverError):
        env.step("more")


def test_the_problem_stays_the_same_also_after_a_reset_without_a_seed_or_with_options():
    env = UnaryFeedback(make())
    for more in ({}, {"options": {"problem_id": "p7"}}):
        _, info = env.reset(**more)
        problem = env.unwrapped.problem
        assert info["problem_id"] == problem.id
        env.step(answer("wrong"))
        assert env.unwrapped.problem == problem


def test_tools_may_be_used_in_every_attempt_and_are_summed_up():
    env = UnaryFeedback(make(ToolStatus.EXCEPTION))
    env.reset(seed=1)
    for turn in (call(), answer("x"), call(), call()):
        env.step(turn)
    *_, info = env.step(right(env))
    assert (info["turns"], info["tool_calls_total"], info["tool_errors"]) == (5, 3, 3)


def test_a_budget_that_runs_out_within_an_attempt_ends_the_episode():
    env = UnaryFeedback(make(max_turns=2))
    _, reward, terminated, truncated, info = play(env, answer("x"), call(), call())
    assert (reward, terminated, truncated, info["end"]) == (0.0, False, True, "turns")


def test_an_unavailable_episode_earns_nothing_and_costs_nothing():
    env = UnaryFeedback(make(ToolStatus.UNAVAILABLE))
    _, reward, _, truncated, info = play(env, answer("x"), answer("x"), call())
    assert (reward, truncated, info["end"]) == (0.0, True, "unavailable")


@pytest.mark.parametrize("options", [{"attempts": 0}, {"decay": 1.5}, {"penalty": -1}])
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ConfigurationError):
        UnaryFeedback(make(), **options)
