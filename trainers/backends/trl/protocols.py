"""Protocols of the trainer: the collector and its batches."""

from __future__ import annotations

from typing import Protocol

from rstar2_env.core.episode import Episode
from rstar2_env.core.row import Row


class Rows(Protocol):
    """The fields of a batch that this trainer reads; see ``Batch``."""

    rows: list[Row]
    groups: list[list[Episode]]


class Collects(Protocol):
    """A collector; see ``Collector``."""

    def collect(self, step: int) -> Rows:
        """Play, select and score the episodes of a rollout."""
