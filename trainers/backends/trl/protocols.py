"""Protocols of the trainer: the collector and its batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from rstar2_env.core.episode import Episode
from rstar2_env.core.row import Row

from ...ranks import Ranks

T = TypeVar("T")


class Rows(Protocol):
    """The fields of a batch that this trainer reads; see ``Batch``."""

    rows: list[Row]
    groups: list[list[Episode]]


class Collects(Protocol):
    """A collector; see ``Collector``."""

    def collect(self, step: int) -> Rows:
        """Play, select and score the episodes of a rollout."""


class ExchangingRanks(Ranks, Protocol):
    """Processes that can also send each other different values."""

    def exchange(self, values: Sequence[T]) -> list[T]:
        """Send one value to each process, in the order of their ranks, and return those that the processes sent here.

        A value must be picklable. Every process must call it.
        """
