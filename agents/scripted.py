"""``scripted``: plays given turns, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Rule, checked

from .base import AGENTS


class Scripted:
    """Plays the same turns in every episode.

    Args:
        turns: The turns, in order.

    Raises:
        ConfigurationError: ``turns`` is empty, or not a sequence of strings.
    """

    @checked
    def __init__(self, turns: Annotated[Sequence[str], Rule(least=1)]) -> None:
        self._turns = tuple(turns)
        self._next = 0

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Start the script from its first turn.

        Args:
            observation: The text that the environment's ``reset`` returned.
            info: The ``info`` that ``reset`` returned.
            seed: Not used.
        """
        self._next = 0

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next turn of the script.

        Raises:
            ConfigurationError: The script has no more turns, and the episode is not over.
        """
        if self._next == len(self._turns):
            raise ConfigurationError(
                f"The script has only {len(self._turns)} turns, but the episode is not over: add turns, "
                "or end the script with a turn without a tool call."
            )
        self._next += 1
        return self._turns[self._next - 1]


AGENTS.register("scripted", Scripted)
