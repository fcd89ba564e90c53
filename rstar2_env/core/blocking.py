"""``run_blocking``: run a coroutine to its end from code that is not one, also where a loop runs already.

What one thread runs so, another may stop (``Stoppable``).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, TypeVar

from rstar2_env.core.errors import Rstar2Error

T = TypeVar("T")


class StoppedError(Rstar2Error, RuntimeError):
    """Another thread stopped what this one was running."""


class Stoppable:
    """The coroutines that a thread runs with ``run_blocking``; any other thread may end them all.

    Example::

        work = Stoppable()
        with work.here():                # in the thread that works
            run_blocking(play)           # raises StoppedError once another thread called work.stop()
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = False
        self._running: set[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = set()

    @contextlib.contextmanager
    def here(self) -> Iterator[None]:
        """What this thread runs within may be stopped."""
        token = _STOPPABLE.set(self)
        try:
            yield
        finally:
            _STOPPABLE.reset(token)

    def stop(self) -> None:
        """Cancel what runs; what begins later ends at once."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for loop, task in running:
            _cancel(loop, task)

    async def run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine that ``stop`` cancels.

        Raises:
            StoppedError: It was stopped.
        """
        task = asyncio.current_task()
        assert task is not None
        own = (asyncio.get_running_loop(), task)
        with self._lock:
            if self._stopped:
                raise StoppedError("It was stopped before it began.")
            self._running.add(own)
        try:
            return await make()
        except asyncio.CancelledError:
            if self._stopped:
                raise StoppedError("It was stopped while it ran.") from None
            raise
        finally:
            with self._lock:
                self._running.discard(own)


_STOPPABLE: ContextVar[Stoppable | None] = ContextVar("stoppable", default=None)


def run_blocking(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine and return its result; Ctrl-C cancels it.

    Args:
        make: Makes the coroutine. It runs in a loop of its own: in a thread where this thread has a running loop, as in
            a notebook.

    Raises:
        StoppedError: Another thread stopped it; see ``Stoppable``.
    """
    around = _STOPPABLE.get()

    async def made() -> T:
        return await (make() if around is None else around.run(make))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(made())
    tasks: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []

    async def in_own_loop() -> T:
        task = asyncio.ensure_future(made())
        tasks.append((asyncio.get_running_loop(), task))
        return await task

    with ThreadPoolExecutor(max_workers=1) as thread:
        running = thread.submit(asyncio.run, in_own_loop())
        try:
            return running.result()
        except KeyboardInterrupt:
            for loop, task in tasks:
                _cancel(loop, task)
            raise


async def all_ended(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """What these return, in their order; where one raises, after all others have ended, so that none goes on unheard.

    Raises:
        BaseException: The first in their order.
    """
    found = await asyncio.gather(*awaitables, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return [one for one in found if not isinstance(one, BaseException)]


def _cancel(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has just closed: everything has ended
        loop.call_soon_threadsafe(task.cancel)
