"""Plays turns that were written beforehand, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rstar2_env.core.errors import ConfigurationError

from .base import AGENTS


class Scripted:
    """Says the same turns in every episode.

    Args:
        turns: The turns, in order.

    Raises:
        ConfigurationError: ``turns`` is empty, or not a sequence of texts.
    """

    def __init__(self, turns: Sequence[str]) -> None:
        if isinstance(turns, str) or not turns or not all(isinstance(turn, str) for turn in turns):
            raise ConfigurationError(f"turns must be a list of at least one text, not {turns!r}.")
        self._turns = tuple(turns)
        self._next = 0

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Go back to the first turn."""
        self._next = 0

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """The next turn of the script.

        Raises:
            ConfigurationError: The script has no more turns, and the episode is not over.
        """
        if self._next == len(self._turns):
            raise ConfigurationError(
                f"The script has {len(self._turns)} turns and the episode wants another; end it with one that holds no "
                "call, or write more turns."
            )
        self._next += 1
        return self._turns[self._next - 1]


AGENTS.register("scripted", Scripted)
