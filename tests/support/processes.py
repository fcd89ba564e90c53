"""Several processes of a run in one: each is a thread, and they exchange their values in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
WAIT_S = 20


class ThreadRanks:
    """One process of several; a call that another does not make in time breaks the barrier for all.

    Args:
        rank: Number of this process.
        board: Where all of them leave their values.
        barrier: Where all of them wait for each other.
    """

    def __init__(self, rank: int, board: list[Any], barrier: threading.Barrier) -> None:
        self.rank, self.size = rank, len(board)
        self._board, self._barrier = board, barrier
        self.calls = 0

    def gather(self, value: T) -> list[T]:
        """See ``Ranks``."""
        self.calls += 1
        self._board[self.rank] = value
        self._barrier.wait(WAIT_S)
        values = list(self._board)
        self._barrier.wait(WAIT_S)
        return values

    def sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """See ``Ranks``."""
        return np.sum(self.gather(np.array(values, dtype=np.float64)), axis=0)


def on_ranks(size: int, work: Callable[[ThreadRanks], T]) -> list[T | BaseException]:
    """Run ``work`` on every process at the same time; return what each returned or raised."""
    board: list[Any] = [None] * size
    barrier = threading.Barrier(size)

    def one(rank: int) -> T | BaseException:
        try:
            return work(ThreadRanks(rank, board, barrier))
        except BaseException as error:
            return error

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(one, range(size)))


def all_ranks(size: int, work: Callable[[ThreadRanks], T]) -> list[T]:
    """Run ``work`` on every process at the same time; raise what one of them raised."""
    done = on_ranks(size, work)
    for each in done:
        if isinstance(each, BaseException):
            raise each
    return done  # type: ignore[return-value]
