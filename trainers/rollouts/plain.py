"""``plain``: plays every episode of a group from its start to its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rstar2_env.core.episode import Episode

from ..samplers.base import Start
from .base import ROLLOUTS, Play, Rollout, play_all


@dataclass(frozen=True)
class Plain(Rollout):
    """Plays the episodes of all groups at the same time."""

    async def __call__(self, starts: Sequence[Start], size: int, play: Play) -> list[list[Episode]]:
        """See ``Rollout``."""
        return await play_all(
            starts, size, lambda start, group, member: play.episode(start, group=group, member=member)
        )


ROLLOUTS.register("plain", Plain)
