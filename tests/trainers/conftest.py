"""A small world in which a random model can learn something in a few steps."""

import gymnasium as gym
import pytest

from rstar2_env.env.spaces import UnicodeText


class LetterEnv(gym.Env):
    """One turn; the reward is 1 when the turn begins with a lower-case letter. It knows nothing of rstar2-env."""

    def __init__(self, reward=None, split="train"):
        self.observation_space = self.action_space = UnicodeText(1000)
        self._reward = reward

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return f"Say a letter. {int(self.np_random.integers(10))}", {}

    def step(self, action):
        reward = float(action[:1].islower()) if self._reward is None else self._reward
        return "", reward, True, False, {}


@pytest.fixture
def letter_env():
    return LetterEnv


@pytest.fixture
def letter_options(tiny_model, tmp_path, letter_env):
    """Options of a short run in that world."""
    return {
        "model": str(tiny_model),
        "env": letter_env,
        "output_dir": str(tmp_path / "run"),
        "steps": 2,
        "problems_per_step": 4,
        "group_size": 4,
        "rows_per_device": 16,
        "learning_rate": 3e-3,
        "weight_decay": 0.0,
        "max_episode_tokens": 16,
        "max_turn_tokens": 2,
        "threads": 2,
        "progress": False,
    }
