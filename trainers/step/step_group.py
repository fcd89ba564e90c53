"""``StepGroup``: a group of a step; if the step ends before the group does, a later step continues the group.

Covered: the form in which a checkpoint stores a group that is carried over. Not covered: when a group is carried over;
the collector decides this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from rstar2_env.core.episode import Episode
from rstar2_env.core.packed_episodes import pack_episode, unpack_episode

from ..samplers.base import Start
from .group_play import EpisodeKey, GroupPlace

MOST_STEPS = 4
"""Maximum number of steps that carry over a group; the next step waits for it."""


@dataclass(frozen=True, slots=True)
class StepGroup:
    """One group of a step.

    Attributes:
        start: The arguments of ``reset`` for all of its episodes.
        place: The group's number in the step, its number in the step that first played it, and its episodes from
            earlier steps.
        steps: Number of steps that have carried the group over.
    """

    start: Start
    place: GroupPlace
    steps: int = 0

    def state_dict(self) -> dict[str, Any]:
        """Return the group as JSON values, without its number, since the step that continues the group assigns one."""
        place = self.place
        return {
            "start": {**asdict(self.start), "options": dict(self.start.options)},
            "drawn": list(place.drawn),
            "steps": self.steps,
            "ended": [[list(key), pack_episode(episode)] for key, episode in place.ended.items()],
            "begun": [[list(key), pack_episode(episode)] for key, episode in place.begun.items()],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Create a group, with the number 0, from a state that ``state_dict`` returned."""
        step, number = state["drawn"]
        place = GroupPlace(0, (int(step), int(number)), _episodes(state["ended"]), _episodes(state["begun"]))
        return cls(Start(**state["start"]), place, int(state["steps"]))


def _episodes(states: Iterable[Any]) -> dict[EpisodeKey, Episode]:
    return {tuple(map(int, key)): unpack_episode(record) for key, record in states}
