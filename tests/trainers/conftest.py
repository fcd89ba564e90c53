"""A short run in a small world."""

import pytest
from letter_env import LetterEnv


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
        "tokens_per_device": 16 * 16,
        "learning_rate": 3e-3,
        "weight_decay": 0.0,
        "max_episode_tokens": 16,
        "max_turn_tokens": 2,
        "threads": 2,
        "progress": False,
    }
