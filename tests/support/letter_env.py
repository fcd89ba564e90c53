"""A small world in which a random model can learn something in a few steps."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from rstar2_env.env.spaces import UnicodeText


class LetterEnv(gym.Env[str, str]):
    """The reward is 1 when the turn begins with a lower-case letter. It knows nothing of tools, calls and answers.

    Args:
        reward: The reward of every episode instead, whatever the policy says.
        turns: Turns of an episode; the last one is rewarded.
        split: Ignored; trainers name the split they want.
    """

    def __init__(self, reward: float | None = None, turns: int = 1, split: str = "train") -> None:
        self.observation_space = self.action_space = UnicodeText(1000)
        self._reward, self._turns = reward, turns
        self._left = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Ask for a letter."""
        super().reset(seed=seed)
        self._left = self._turns
        return f"Say a letter. {int(self.np_random.integers(10))}", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Reward a turn, or ask for another."""
        self._left -= 1
        reward = float(action[:1].islower()) if self._reward is None else self._reward
        return ("Another." if self._left else ""), reward, self._left == 0, False, {}


class AskedAgain(LetterEnv):
    """The same, but it asks again, up to three times in all, until a turn begins with a lower-case letter.

    Args:
        split: Ignored.
    """

    def __init__(self, split: str = "train") -> None:
        super().__init__(turns=3)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Reward a turn, or ask for another."""
        text, reward, ended, truncated, info = super().step(action)
        return "" if reward else text, reward, ended or bool(reward), truncated, info
