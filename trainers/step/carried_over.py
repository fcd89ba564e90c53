"""``CarriedOver``: a group that a step did not wait for, with what was played of it, until a later step resumes it.

Covered: its form in a checkpoint. Not covered: when a group is carried over, which the collector decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from rstar2_env.core.episode import Episode
from rstar2_env.core.packed_episodes import pack_episode, unpack_episode

from ..samplers.base import Start
from .group_play import EpisodeKey, GroupPlace

MOST_STEPS = 4
"""Maximum number of steps that carry over a group; the next step waits for it."""


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """One unfinished group.

    Attributes:
        start: The start of its episodes.
        drawn: The step, and the group's number in it, in which the group was first played.
        steps: Number of steps that have carried it over.
        ended: Its episodes that have ended.
        begun: Parts of its other episodes.
    """

    start: Start
    drawn: tuple[int, int]
    steps: int
    ended: Mapping[EpisodeKey, Episode] = field(default_factory=dict)
    begun: Mapping[EpisodeKey, Episode] = field(default_factory=dict)

    def place(self, number: int) -> GroupPlace:
        """Return the group as one of a step.

        Args:
            number: Its number in that step.
        """
        return GroupPlace(number, self.drawn, self.ended, self.begun)

    def state_dict(self) -> dict[str, Any]:
        """Return the group as JSON can hold it."""
        return {
            "start": {**asdict(self.start), "options": dict(self.start.options)},
            "drawn": list(self.drawn),
            "steps": self.steps,
            "ended": [[list(key), pack_episode(episode)] for key, episode in self.ended.items()],
            "begun": [[list(key), pack_episode(episode)] for key, episode in self.begun.items()],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the group that ``state_dict`` returned as a state."""
        step, number = state["drawn"]
        return cls(
            Start(**state["start"]),
            (int(step), int(number)),
            int(state["steps"]),
            _episodes(state["ended"]),
            _episodes(state["begun"]),
        )


def _episodes(states: Iterable[Any]) -> dict[EpisodeKey, Episode]:
    return {tuple(map(int, key)): unpack_episode(record) for key, record in states}
