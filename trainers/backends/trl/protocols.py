"""Protocols of the objects that the trainer uses: the collector, its batches, and the processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from rstar2_env.core.episode import Episode
from rstar2_env.core.row import Row

from ...ranks import Ranks

T = TypeVar("T")


class Rows(Protocol):
    """The fields of a batch that ``CollectorTrainer`` reads; see ``Batch``."""

    rows: list[Row]
    groups: list[list[Episode]]


class Collects(Protocol):
    """Protocol of a collector; see ``Collector``."""

    def collect(self, step: int) -> Rows:
        """Play, select and score the episodes of a rollout."""


class ExchangingRanks(Ranks, Protocol):
    """Processes that can also send a different value to each process."""

    def exchange(self, values: Sequence[T]) -> list[T]:
        """Send one value to each process, in rank order, and return the values received from all processes.

        A value must be picklable. Every process must call it.
        """
