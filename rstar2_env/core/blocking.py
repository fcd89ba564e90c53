"""``run_blocking``: run a coroutine to its end from code that is not one, also where a loop runs already."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_blocking(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine and return its result; Ctrl-C cancels it.

    Args:
        make: Makes the coroutine. It runs in a loop of its own: in a thread where this thread has a running loop, as in
            a notebook.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    tasks: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []

    async def in_own_loop() -> T:
        task = asyncio.ensure_future(make())
        tasks.append((asyncio.get_running_loop(), task))
        return await task

    with ThreadPoolExecutor(max_workers=1) as thread:
        running = thread.submit(asyncio.run, in_own_loop())
        try:
            return running.result()
        except KeyboardInterrupt:
            for loop, task in tasks:
                with contextlib.suppress(RuntimeError):  # the loop has just closed: everything has ended
                    loop.call_soon_threadsafe(task.cancel)
            raise
