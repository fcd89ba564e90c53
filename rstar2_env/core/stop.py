"""A wish to stop, that many threads ask for, and work on threads whose results come in order.

Covered: what Ctrl-C needs: nothing new begins, what is in flight ends, and whoever waits knows how much that is. Not
covered: who wishes it (the command line's signal handler, see ``rstar2_env.cli._interrupt``).
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Stop:
    """A wish to stop; calling it says whether there is one.

    Attributes:
        at_once: Whether what is in flight is given up too: nobody waits for it.
    """

    def __init__(self) -> None:
        self.at_once = False
        self._wished = threading.Event()
        self._lock = threading.Lock()
        self._in_flight = 0

    def __call__(self) -> bool:
        """Whether somebody wished it."""
        return self._wished.is_set()

    def wish(self, *, at_once: bool = False) -> None:
        """Ask everybody to stop."""
        self.at_once = self.at_once or at_once
        self._wished.set()

    @property
    def in_flight(self) -> int:
        """How many pieces of work have begun and not ended."""
        return self._in_flight

    @contextmanager
    def flight(self) -> Iterator[None]:
        """Count what runs within as in flight."""
        with self._lock:
            self._in_flight += 1
        try:
            yield
        finally:
            with self._lock:
                self._in_flight -= 1


def in_order(
    work: Callable[[T], R], tasks: Iterable[T], *, workers: int, ahead: int, stop: Stop | None = None
) -> Generator[tuple[T, R], None, None]:
    """Do work on threads; yield each task with its result, in the order of the tasks.

    When ``stop`` is wished, nothing new begins, and the results end with the last task that had begun. When the
    iterator is closed early, it waits for what is in flight, unless that is to be given up.

    Args:
        work: Called in one of the threads.
        tasks: Taken in the caller's thread, few ahead of what was yielded.
        workers: Threads.
        ahead: Most tasks taken and not yet yielded.
        stop: Asked between two tasks.

    Raises:
        BaseException: Whatever ``work`` raised, at the turn of its task.
    """
    stop = Stop() if stop is None else stop
    jobs: queue.SimpleQueue[tuple[Future[R], T] | None] = queue.SimpleQueue()

    def serve() -> None:
        while (job := jobs.get()) is not None:
            future, task = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                with stop.flight():
                    result = work(task)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

    # Daemons: a process that is told to stop at once does not wait for them at its exit.
    threads = [threading.Thread(target=serve, name="in-order", daemon=True) for _ in range(workers)]
    for thread in threads:
        thread.start()
    remaining = iter(tasks)
    waiting: deque[tuple[T, Future[R]]] = deque()
    try:
        while True:
            for task in () if stop() else itertools.islice(remaining, ahead - len(waiting)):
                future: Future[R] = Future()
                waiting.append((task, future))
                jobs.put((future, task))
            if stop():
                for _, future in waiting:
                    future.cancel()
            if not waiting or waiting[0][1].cancelled():
                return
            task, future = waiting.popleft()
            yield task, future.result()
    finally:
        for _, future in waiting:
            future.cancel()
        for _ in threads:
            jobs.put(None)
        for thread in threads:
            if not stop.at_once:
                thread.join()
