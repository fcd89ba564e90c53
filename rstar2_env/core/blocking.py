"""``run_blocking``: runs a coroutine from synchronous code until it ends, even if an event loop is already running.

``Stoppable`` lets other threads stop coroutines that run in ``run_blocking``; ``cancel_blocking`` cancels such a
coroutine from a signal handler.
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
    """Another thread stopped the coroutine that this thread was running with ``run_blocking``."""


class Stoppable:
    """Lets other threads stop the coroutines that a thread runs with ``run_blocking``.

    Example::

        work = Stoppable()
        with work.here():                # in the working thread
            run_blocking(play)           # raises StoppedError after another thread called work.stop()
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = False
        self._running: set[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = set()

    @contextlib.contextmanager
    def here(self) -> Iterator[None]:
        """Within the ``with`` block, let ``stop`` stop every coroutine that this thread runs with ``run_blocking``."""
        token = _STOPPABLE.set(self)
        try:
            yield
        finally:
            _STOPPABLE.reset(token)

    def stop(self) -> None:
        """Cancel the running coroutines; coroutines that start later are cancelled immediately."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for loop, task in running:
            with contextlib.suppress(RuntimeError):  # the loop has just closed, so everything has ended
                loop.call_soon_threadsafe(task.cancel)

    async def run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine that ``stop`` can cancel, and return its result.

        Raises:
            StoppedError: The coroutine was stopped.
        """
        task = asyncio.current_task()
        assert task is not None
        own = (asyncio.get_running_loop(), task)
        with self._lock:
            if self._stopped:
                raise StoppedError("The asynchronous call was cancelled before it began.")
            self._running.add(own)
        try:
            return await make()
        except asyncio.CancelledError:
            if self._stopped:
                raise StoppedError("The asynchronous call was cancelled while it ran.") from None
            raise
        finally:
            with self._lock:
                self._running.discard(own)


_STOPPABLE: ContextVar[Stoppable | None] = ContextVar("stoppable", default=None)


class _Calls(threading.local):
    """For each thread, the state of the ``run_blocking`` call whose event loop runs in the thread.

    Attributes:
        running: Whether the thread has such a call: true from before the event loop is created until after it is
            closed.
        cancelled: Whether the call was cancelled while the event loop was not running.
    """

    running = False
    cancelled = False


_calls = _Calls()


def run_blocking(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine and return its result; Ctrl-C cancels it.

    Args:
        make: Creates the coroutine. It runs in a new event loop; if this thread already has a running loop, as in a
            notebook, the new loop runs in another thread.

    Raises:
        StoppedError: Another thread stopped the coroutine; see ``Stoppable``.
        asyncio.CancelledError: A signal handler cancelled the coroutine; see ``cancel_blocking``.
    """
    around = _STOPPABLE.get()

    async def made() -> T:
        return await (make() if around is None else around.run(make))

    async def unless_cancelled() -> T:
        if _calls.cancelled:
            raise asyncio.CancelledError
        return await made()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        _calls.cancelled = False
        _calls.running = True
        try:
            found = asyncio.run(unless_cancelled())
        finally:
            _calls.running = False
        if _calls.cancelled:
            raise asyncio.CancelledError from None
        return found
    work = Stoppable()
    with ThreadPoolExecutor(max_workers=1) as thread:
        try:
            return thread.submit(asyncio.run, work.run(made)).result()
        except KeyboardInterrupt:  # it may arrive while submit starts the thread, when the coroutine already runs
            work.stop()
            raise


def cancel_blocking() -> bool:
    """Cancel the coroutine that this thread runs with ``run_blocking``; a signal handler may call this at any moment.

    If the handler raised an exception instead, it could interrupt the creation or the closing of the event loop, which
    would then stay open. While the loop is not running, this function only marks the call as cancelled: the coroutine
    does not begin, or ``run_blocking`` raises after the loop is closed.

    Returns:
        Whether there is such a coroutine. The result is False in a thread that already had a loop, as in a notebook:
        the coroutine then runs in another thread, and the handler stops it by raising an exception.
    """
    if not _calls.running:
        return False
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        _calls.cancelled = True
        return True

    def cancel() -> None:
        for task in asyncio.all_tasks(loop):
            task.cancel()

    # Not at once: the signal may have interrupted a task in the middle of a step.
    loop.call_soon_threadsafe(cancel)
    return True


async def all_ended(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """Wait for all awaitables and return their results in order; if any raises, raise only after all have ended.

    Raises:
        BaseException: The first exception, in the order of the awaitables.
    """
    found = await asyncio.gather(*awaitables, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return [one for one in found if not isinstance(one, BaseException)]
