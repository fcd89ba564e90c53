"""An environment of text that is built on nothing of this package, and a wrapper that does nothing."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from rstar2_env.env.spaces import UnicodeText


class PlainEnv(gym.Env[str, str]):
    """Text in, text out, and an ``info`` that is empty: what an agent may count on everywhere.

    Args:
        turns: Turns until the episode is over.
    """

    def __init__(self, turns: int = 3) -> None:
        self.observation_space = self.action_space = UnicodeText(1_000_000)
        self._turns, self._left = turns, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        self._left = self._turns
        return f"Say something about the number {int(self.np_random.integers(100))}.", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take any turn."""
        self._left -= 1
        over = self._left <= 0
        return "" if over else f"Go on; {self._left} more.", float(over), over, False, {}


class PlainWrapper(gym.Wrapper[str, str, str, str]):
    """Passes everything on; what is inside it is not the innermost environment any more."""
