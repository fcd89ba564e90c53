"""Environments for episodes: each belongs to one episode at a time, and every call of it runs in a thread.

Covered: environments are reused once an episode has ended well; one whose call failed, or was abandoned while it ran,
is closed as soon as that call is over, and never lent again. An abandoned call keeps its thread until then, and takes
none away from other episodes. Not covered: ending a call that runs (its tool has a time limit of its own).
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import gymnasium as gym

T = TypeVar("T")

EnvFactory = Callable[[], "gym.Env[str, str]"]

_MOST_THREADS = 1 << 16
"""No limit that is ever reached: the pool starts a thread only when all others are inside a call."""

_log = logging.getLogger(__name__)


class EnvPool:
    """Lends environments, and makes new ones when none is idle.

    Args:
        make_env: Makes one environment.
    """

    def __init__(self, make_env: EnvFactory) -> None:
        self._make_env = make_env
        self._idle: list[gym.Env[str, str]] = []
        self._threads: ThreadPoolExecutor | None = None

    def lend(self) -> LentEnv:
        """An environment for one episode; hand it back with ``LentEnv.release``."""
        return LentEnv(self)

    def close(self) -> None:
        """Wait for the calls that still run, close every environment, and end the threads."""
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=True)
        while self._idle:
            _close(self._idle.pop())

    def _take(self) -> gym.Env[str, str]:
        try:
            return self._idle.pop()
        except IndexError:
            return self._make_env()

    def _submit(self, function: Callable[[], T]) -> Future[T]:
        # asyncio's own pool is far too small: a step waits for a tool, and every episode may be waiting. A fixed size
        # would let abandoned calls, which still hold their threads, keep other episodes waiting.
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="rstar2-env")
        return self._threads.submit(function)


class LentEnv:
    """One environment in the hands of one episode; ``reset`` and ``step`` are Gymnasium's, awaited."""

    def __init__(self, pool: EnvPool) -> None:
        self._pool = pool
        self._env: gym.Env[str, str] | None = None
        self._call: Future[Any] | None = None  # the newest
        self._sound = True
        # Guards the two flags: of a call that ends and an episode that abandons it, exactly one disposes.
        self._lock = threading.Lock()
        self._inside = self._abandoned = False

    async def reset(self, *, seed: int | None, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """See ``gymnasium.Env.reset``; the first call takes the environment from the pool."""

        def take_and_reset() -> tuple[str, dict[str, Any]]:
            if self._env is None:
                self._env = self._pool._take()
            return self._env.reset(seed=seed, options=dict(options) or None)

        return await self._in_thread(take_and_reset)

    async def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """See ``gymnasium.Env.step``."""
        env = self._env
        if env is None:
            raise RuntimeError("An environment must be reset before its first step.")
        text, reward, terminated, truncated, info = await self._in_thread(lambda: env.step(action))
        return text, float(reward), terminated, truncated, info

    def release(self) -> None:
        """Hand the environment back, or have it closed when it cannot be trusted any more. Never blocks."""
        if self._call is None:
            return
        with self._lock:
            self._abandoned = True
            if self._inside and not self._call.cancel():
                return  # the call that runs closes the environment when it ends
        if self._sound and self._env is not None:
            self._pool._idle.append(self._env)
        elif self._env is not None:
            self._pool._submit(self._dispose)

    async def _in_thread(self, function: Callable[[], T]) -> T:
        def run() -> T:
            try:
                return function()
            finally:
                with self._lock:
                    self._inside = False
                    abandoned = self._abandoned
                if abandoned:
                    self._dispose()

        self._sound, self._inside = False, True
        self._call = self._pool._submit(run)
        result: T = await asyncio.wrap_future(self._call)
        self._sound = True
        return result

    def _dispose(self) -> None:
        if self._env is not None:
            _close(self._env)


def _close(env: gym.Env[str, str]) -> None:
    try:
        env.close()
    except Exception:
        _log.warning("An environment could not be closed.", exc_info=True)
