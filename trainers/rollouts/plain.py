"""``plain``: plays every episode of a group from its start to its end."""

from __future__ import annotations

from dataclasses import dataclass

from .base import ROLLOUTS, Rollout


@dataclass(frozen=True)
class Plain(Rollout):
    """Plays the episodes of all groups at the same time."""


ROLLOUTS.register("plain", Plain)
