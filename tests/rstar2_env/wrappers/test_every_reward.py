"""Every reward component in a wrapper: one whose needs are met there pays, any other is refused with its reason."""

from __future__ import annotations

import math

import gymnasium as gym
import pytest
from every_reward import MADE, PROBLEM, judge_server
from letter_env import LetterEnv

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rewards import REWARDS, make_component
from rstar2_env.rewards.needs import PLACES
from rstar2_env.wrappers.reward_shaping import RewardShaping

REASONS = {
    "group": "the other episodes of its group",
    "lm": "log-probabilities",
    "play": "further episodes",
    "tokens": "the policy's tokens",
}


@pytest.fixture(scope="module")
def judge():
    with judge_server() as found:
        yield found


def wrapped(written):
    env = gym.make("rstar2/MathTool-v0", problems=[PROBLEM])
    return RewardShaping(env, [make_component(written)])


def test_every_reward_is_tried():
    assert {name for name, _ in MADE} == set(REWARDS)


@pytest.mark.parametrize(("name", "options"), MADE)
def test_it_pays_or_is_refused_with_the_reason(name, options, judge):
    needs = make_component([name, options]).needs
    if lacking := needs - PLACES["wrapper"]:
        reason = rf"'{name}' needs .*{REASONS[min(lacking)]}.*rewards of a trainer.* scores of an evaluation"
        with pytest.raises(ConfigurationError, match=reason):
            wrapped([name, {**options, "judge": judge}])
        return
    if "judge" in needs:
        with pytest.raises(ConfigurationError, match=rf"'{name}' needs a judge, .* name a judge in the option `judge`"):
            wrapped([name, options])
        options = {**options, "judge": judge}
    env = wrapped([name, options])
    env.reset(seed=1)
    *_, terminated, truncated, info = env.step("<answer>\\boxed{B}</answer>")
    env.close()
    assert (terminated, truncated) == (True, False)
    assert math.isfinite(info["reward_components"][name])


def test_the_wrapper_finds_the_problem_where_the_environment_has_one():
    env = wrapped("metric_threshold")
    env.reset(seed=1)
    _, reward, *_ = env.step("<answer>\\boxed{B}</answer>")
    assert reward == 1 + 3.0
    env.close()
    with pytest.raises(ConfigurationError, match=r"needs the problem that is played.*no source of problems"):
        RewardShaping(LetterEnv(), ["letter_choice"])
