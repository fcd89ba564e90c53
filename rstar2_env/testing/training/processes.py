"""Simulated processes for checks: threads that sum and gather as the processes of a run do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

_PATIENCE_S = 30.0
"""Maximum seconds that a thread waits for the other threads, which arrive immediately or never."""
_LOOK_S = 0.02
_WAITS = "a process waits at ranks.sum or ranks.gather"


class ThreadRanks:
    """The ``ranks`` object for one of several simulated processes, which are threads.

    Args:
        rank: Rank of the process.
        size: Number of processes.
        values: List with the value that each process contributes; all processes share the list.
        barrier: Barrier that all processes share.

    Attributes:
        calls: Number of calls of ``sum`` and ``gather``.
    """

    def __init__(self, rank: int, size: int, values: list[Any], barrier: threading.Barrier) -> None:
        self.rank, self.size = rank, size
        self._values, self._barrier = values, barrier
        self.calls = 0

    def sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the elementwise sum over all processes."""
        arrays = self.gather(np.asarray(values, dtype=np.float64))
        if len({array.shape for array in arrays}) != 1:
            raise AssertionError(
                "ranks.sum must be called with arrays of the same shape on all processes; got the shapes "
                f"{[array.shape for array in arrays]}"
            )
        total: NDArray[np.float64] = np.sum(arrays, axis=0)
        return total

    def gather(self, value: T) -> list[T]:
        """Return the values of all processes, in order."""
        self.calls += 1
        self._values[self.rank] = value
        try:
            self._barrier.wait(_PATIENCE_S)
            found = list(self._values)
            self._barrier.wait(_PATIENCE_S)
        except threading.BrokenBarrierError:
            raise AssertionError(
                f"{_WAITS} for processes that do not call it; all processes must make the same calls, even if they "
                "have no rows"
            ) from None
        return found


def in_each(size: int, function: Callable[[ThreadRanks], T]) -> list[T | BaseException]:
    """Call a function in each of several processes, and return the result or exception of each.

    If a process waits for a call that another process never makes, its result is an ``AssertionError``.
    """
    values: list[Any] = [None] * size
    barrier = threading.Barrier(size)
    with ThreadPoolExecutor(size) as threads:
        running = [threads.submit(function, ThreadRanks(rank, size, values, barrier)) for rank in range(size)]
        left: set[Future[T]] = set(running)
        while left:
            _, left = wait(left, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
            if len(left) < size and barrier.n_waiting:
                barrier.abort()  # a process that has ended makes no further calls
    return [one.exception() or one.result() for one in running]


def in_processes(size: int, function: Callable[[ThreadRanks], T]) -> list[T]:
    """Call a function in each of several processes, and return the result of each.

    Raises:
        AssertionError: A process waits for a call that another process never makes.
    """
    found = in_each(size, function)
    errors = [one for one in found if isinstance(one, BaseException)]
    if errors:
        # An error in one process also causes errors at the barrier in the others: raise the original error.
        raise next((one for one in errors if _WAITS not in str(one)), errors[0])
    return [one for one in found if not isinstance(one, BaseException)]
