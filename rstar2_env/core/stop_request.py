"""``Stop``: a stop request shared by threads; ``in_order``: runs tasks on threads and yields results in order.

Covered: after a request, nothing new begins, and work in flight is counted and finishes. Not covered: the signal
handler that requests the stop on Ctrl-C (``rstar2_env.cli._interrupt``).
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
    """Lets threads request a stop; calling the object returns whether a stop was requested.

    Attributes:
        at_once: Whether the requested stop also abandons work in flight.
    """

    def __init__(self) -> None:
        self.at_once = False
        self._wished = threading.Event()
        self._lock = threading.Lock()
        self._in_flight = 0

    def __call__(self) -> bool:
        """Whether a stop was requested."""
        return self._wished.is_set()

    def request(self, *, at_once: bool = False) -> None:
        """Request a stop; ``at_once`` also abandons work in flight."""
        self.at_once = self.at_once or at_once
        self._wished.set()

    @property
    def in_flight(self) -> int:
        """Number of tasks that have begun and not yet ended."""
        return self._in_flight

    @contextmanager
    def flight(self) -> Iterator[None]:
        """Within the ``with`` block, count a task as in flight."""
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
    """Run ``work`` on threads for each task; yield each task with its result, in the order of the tasks.

    After a stop request nothing new begins, and the results end with the last task that had begun. An iterator that is
    closed early waits for work in flight, unless ``stop.at_once`` is true.

    Args:
        work: Called in one of the threads.
        tasks: Consumed in the caller's thread, a few ahead of the yielded ones.
        workers: Number of threads.
        ahead: Largest number of tasks taken and not yet yielded.
        stop: Checked between two tasks.

    Raises:
        BaseException: ``work`` raised this exception for a task; it is raised instead of yielding the task's result.
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

    # Daemon threads: a process that stops at once does not wait for them at exit.
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
