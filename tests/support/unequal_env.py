"""A world whose groups have episodes of very unequal lengths, and which writes down who played each, and when."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from letter_env import LetterEnv

TURNS = (1, 2, 3, 8)


class UnequalEnv(LetterEnv):
    """The seed, which is the same for a whole group, says how many turns an episode has.

    Args:
        log: Folder in which each process writes a line for every episode that it has played to its end.
        sandbox_url: Ignored.
        split: Ignored.
    """

    def __init__(self, log: str, sandbox_url: str = "", split: str = "train") -> None:
        super().__init__()
        self._file = Path(log) / f"{os.environ.get('RANK', '0')}.jsonl"
        self._seed, self._began = 0, 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Ask for a letter."""
        assert seed is not None
        self._turns = TURNS[seed % len(TURNS)]
        self._seed, self._began = seed, time.monotonic()
        return super().reset(seed=seed, options=options)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Reward a turn, or ask for another; write down an episode that has ended."""
        told = super().step(action)
        if told[2]:
            line = json.dumps({"seed": self._seed, "began": self._began, "ended": time.monotonic()}) + "\n"
            with self._file.open("a", encoding="utf-8") as file:
                file.write(line)
        return told
