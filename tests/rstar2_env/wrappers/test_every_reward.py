"""Every reward component in a wrapper: one that needs nothing pays there, any other is refused with its reason."""

from __future__ import annotations

import math

import gymnasium as gym
import pytest
from letter_env import LetterEnv

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems import Problem
from rstar2_env.rewards import REWARDS, make_component
from rstar2_env.wrappers.reward_shaping import RewardShaping

OPTIONS = {
    "cosine_length": {"longest": 100, "of": "text"},
    "overlong": {"limit": 100},
    "router": {"by": "problem", "routes": {"sums": "outcome"}},
}
REASONS = {
    "group": "the other episodes of its group",
    "judge": "a judge",
    "lm": "log-probabilities",
    "play": "further episodes",
    "tokens": "the policy's tokens",
}
PROBLEM = Problem("p", "Which?", "B", "sums", {"files": {"a.py": "a = 1\n"}, "fixed": {"a.py": "a = 2\n"}})


def wrapped(name):
    env = gym.make("rstar2/MathTool-v0", problems=[PROBLEM])
    return RewardShaping(env, [make_component([name, OPTIONS.get(name, {})])])


@pytest.mark.parametrize("name", list(REWARDS))
def test_it_pays_or_is_refused_with_the_reason(name):
    needs = make_component([name, OPTIONS.get(name, {})]).needs - {"problem"}
    if needs:
        with pytest.raises(ConfigurationError, match=rf"'{name}' needs .*{REASONS[min(needs)]}.*rewards of a trainer"):
            wrapped(name)
        return
    env = wrapped(name)
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
    with pytest.raises(ConfigurationError, match="needs the problem that is played, which this environment has no"):
        RewardShaping(LetterEnv(), ["letter_choice"])
