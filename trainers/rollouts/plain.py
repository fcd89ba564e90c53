"""``plain``: every episode of a group is played from its start to its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rstar2_env.core.episode import Episode

from ..samplers.base import Start
from .base import ROLLOUTS, Play, at_once


@dataclass(frozen=True)
class Plain:
    """Plays the episodes of all groups at the same time."""

    async def __call__(self, starts: Sequence[Start], size: int, play: Play) -> list[list[Episode]]:
        """See ``Rollout``."""
        episodes = await at_once(
            play.episode(start, group=group, member=member)
            for group, start in enumerate(starts)
            for member in range(size)
        )
        return [episodes[at : at + size] for at in range(0, len(episodes), size)]


ROLLOUTS.register("plain", Plain)
