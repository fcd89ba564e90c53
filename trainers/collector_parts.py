"""``CollectorParts``: the parts of a trainer that a collector works with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rstar2_env.rewards.component import Component

from .advantages.base import Advantage
from .rollouts.base import Rollout
from .selectors.base import Selector


class CollectorParts(Protocol):
    """The parts of a trainer that a collector works with."""

    @property
    def rollout(self) -> Rollout:
        """Plays the groups."""
        ...

    @property
    def rewards(self) -> Sequence[Component]:
        """Score the episodes."""
        ...

    @property
    def selector(self) -> Selector:
        """Chooses the episodes of a group that train."""
        ...

    @property
    def advantage(self) -> Advantage:
        """Turns rewards into advantages."""
        ...
