"""Environments for episodes: each belongs to one episode at a time, and every call of it runs in a thread.

Covered: environments are reused once an episode has ended well; one whose call failed, or was abandoned while it ran,
is closed as soon as that call is over, and never lent again. Not covered: ending a call that runs (its tool has a time
limit of its own).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

import gymnasium as gym

T = TypeVar("T")

EnvFactory = Callable[[], "gym.Env[str, str]"]

_log = logging.getLogger(__name__)


class EnvPool:
    """Lends environments, and makes new ones when none is idle.

    Args:
        make_env: Makes one environment.
        threads: Calls that run at once.
    """

    def __init__(self, make_env: EnvFactory, threads: int) -> None:
        self._make_env, self._size = make_env, threads
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
        # asyncio's own pool is far too small: a step waits for a tool, and every episode may be waiting.
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._size, thread_name_prefix="rstar2-env")
        return self._threads.submit(function)


class LentEnv:
    """One environment in the hands of one episode; ``reset`` and ``step`` are Gymnasium's, awaited."""

    def __init__(self, pool: EnvPool) -> None:
        self._pool = pool
        self._env: gym.Env[str, str] | None = None
        self._call: Future[Any] | None = None
        self._sound = True

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
        if self._sound and self._env is not None:
            self._pool._idle.append(self._env)
        else:
            self._pool._submit(self._dispose)

    async def _in_thread(self, function: Callable[[], T]) -> T:
        self._call = call = self._pool._submit(function)
        self._sound = False
        result = await asyncio.wrap_future(call)
        self._sound = True
        return result

    def _dispose(self) -> None:
        # An abandoned call may still be inside the environment, or just be making it.
        if self._call is not None:
            wait([self._call])
        if self._env is not None:
            _close(self._env)


def _close(env: gym.Env[str, str]) -> None:
    try:
        env.close()
    except Exception:
        _log.warning("An environment could not be closed.", exc_info=True)
