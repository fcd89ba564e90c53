"""Sum or collect values over all processes of a run; a single process gets its own values back.

Covered: collective calls after which every process raises an error, and none hangs, if one process fails
(``Together``). Not covered: the exchange of data between processes, which each backend implements.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rstar2_env.core.errors import Rstar2Error

T = TypeVar("T")


class Ranks(Protocol):
    """All processes of a run. Every process must make the same calls in the same order."""

    @property
    def rank(self) -> int:
        """Rank of this process, from 0."""

    @property
    def size(self) -> int:
        """Number of processes."""

    def sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the elementwise sum over all processes; every process passes an array of the same shape."""

    def gather(self, value: T) -> list[T]:
        """Return the values of all processes, in the order of their ranks. A value must be picklable."""


class OneProcess:
    """The ``Ranks`` of a run that has a single process."""

    rank = 0
    size = 1

    def sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the elementwise sum over all processes; see ``Ranks``."""
        return values

    def gather(self, value: T) -> list[T]:
        """Return the values of all processes, in the order of their ranks; see ``Ranks``."""
        return [value]


ONE = OneProcess()


def first_process() -> bool:
    """Whether this is the first process of a run, according to the variable ``RANK`` that launchers set."""
    return os.environ.get("RANK", "0") == "0"


class OtherProcessError(Rstar2Error, RuntimeError):
    """Another process of the run failed, so this process stops instead of waiting for it."""


class Together:
    """A section of code that all processes enter; if one process fails in the section, all processes raise an error.

    If the code of one process raises an error, the others detect this at their next collective call or at the end of
    the section, and raise an error too. All collective calls of the section must be made through this object.

    Example::

        with Together(ranks) as together:
            counts = together.gather(work())

    Args:
        ranks: The processes.

    Attributes:
        rank: Rank of this process, from 0.
        size: Number of processes.
    """

    def __init__(self, ranks: Ranks) -> None:
        self._ranks, self.rank, self.size = ranks, ranks.rank, ranks.size

    def sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the elementwise sum over all processes; see ``Ranks``.

        Raises:
            OtherProcessError: A process failed before this call.
        """
        return np.sum(self.gather(np.asarray(values, dtype=np.float64)), axis=0)  # type: ignore[no-any-return]

    def gather(self, value: T) -> list[T]:
        """Return the values of all processes, in the order of their ranks; see ``Ranks``.

        Raises:
            OtherProcessError: A process failed before this call.
        """
        gathered = self._ranks.gather((None, value))
        for rank, (failed, _) in enumerate(gathered):
            if failed is not None:
                raise OtherProcessError(f"Process {rank} of {self.size} failed: {failed}")
        return [each for _, each in gathered]

    def __enter__(self) -> Self:
        """Begin the section."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Wait for all processes, and report to them if this one failed.

        Raises:
            OtherProcessError: Another process failed.
        """
        if error is None:
            self.gather(None)
        elif isinstance(error, Exception) and not isinstance(error, OtherProcessError):
            # An interrupt (Ctrl-C, a signal) reaches all processes, so no process waits for this one.
            self._ranks.gather((f"{type(error).__name__}: {error}", None))
