"""``LeftOff``: a group that a step did not wait for, with what was played of it, until a later step goes on with it.

Covered: how it is kept in a checkpoint. Not covered: when a group is left off, which the collector decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from rstar2_env.core.episode import Episode
from rstar2_env.core.packed_episodes import packed, unpacked

from ..samplers.base import Start
from .group_play import Place, Words

MOST_STEPS = 4
"""Steps that may leave off a group; the next one waits for it, so that none is put off for ever."""


@dataclass(frozen=True, slots=True)
class LeftOff:
    """One group.

    Attributes:
        start: Where its episodes start.
        drawn: The step and the number in it in which it was first played.
        steps: Steps that have left it off.
        ended: Its episodes that have ended.
        begun: What was played of others.
    """

    start: Start
    drawn: tuple[int, int]
    steps: int
    ended: Mapping[Words, Episode] = field(default_factory=dict)
    begun: Mapping[Words, Episode] = field(default_factory=dict)

    def place(self, number: int) -> Place:
        """The group as one of a step.

        Args:
            number: Its number in that step.
        """
        return Place(number, self.drawn, self.ended, self.begun)

    def state_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {
            "start": {**asdict(self.start), "options": dict(self.start.options)},
            "drawn": list(self.drawn),
            "steps": self.steps,
            "ended": [[list(words), packed(episode)] for words, episode in self.ended.items()],
            "begun": [[list(words), packed(episode)] for words, episode in self.begun.items()],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Read it back."""
        step, number = state["drawn"]
        return cls(
            Start(**state["start"]),
            (int(step), int(number)),
            int(state["steps"]),
            _episodes(state["ended"]),
            _episodes(state["begun"]),
        )


def _episodes(states: Iterable[Any]) -> dict[Words, Episode]:
    return {tuple(map(int, words)): unpacked(record) for words, record in states}
