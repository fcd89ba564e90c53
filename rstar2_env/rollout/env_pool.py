"""A pool of environments: each one serves one episode at a time, and its calls run in threads.

Covered: environments are reused after an episode ends normally. If a call fails, or is abandoned while it runs, its
environment is closed when the call ends, and never reused. An abandoned call keeps its thread until then, without
taking threads from other episodes. Not covered: ending a running call (a tool has a time limit of its own).
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import gymnasium as gym

from rstar2_env.core.telemetry import carried

T = TypeVar("T")

EnvFactory = Callable[[], "gym.Env[str, str]"]

_MOST_THREADS = 1 << 16
"""Nominal limit of threads, never reached: the pool starts a thread only when all others are inside a call."""

_log = logging.getLogger(__name__)


class EnvPool:
    """Lends environments to episodes, and creates a new environment when none is idle.

    Args:
        make_env: Creates one environment.
    """

    def __init__(self, make_env: EnvFactory) -> None:
        self._make_env = make_env
        self._idle: list[gym.Env[str, str]] = []
        self._threads: ThreadPoolExecutor | None = None

    def lend(self) -> LentEnv:
        """Return an environment for one episode; give it back with ``LentEnv.release``."""
        return LentEnv(self)

    def use(self, make_env: EnvFactory) -> None:
        """Wait for running calls, close all environments, and create environments with ``make_env`` from now on."""
        self.close()
        self._make_env = make_env

    def close(self) -> None:
        """Wait for running calls, close every environment, and end the threads."""
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
        # asyncio's own pool is too small: a step waits for a tool, and all episodes may wait at once. With a fixed
        # size, abandoned calls, which still hold their threads, would delay other episodes.
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="rstar2-env")
        return self._threads.submit(function)


class LentEnv:
    """An environment lent to one episode; ``reset`` and ``step`` are coroutines that return Gymnasium's results."""

    def __init__(self, pool: EnvPool) -> None:
        self._pool = pool
        self._env: gym.Env[str, str] | None = None
        self._call: Future[Any] | None = None  # the newest
        self._sound = True
        # Guards the two flags: the environment is closed by the call that ends, or by the episode that abandons it.
        self._lock = threading.Lock()
        self._inside = self._abandoned = False

    async def reset(self, *, seed: int | None, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Reset the environment, as ``gymnasium.Env.reset`` does; the first call takes an environment from the pool."""

        def take_and_reset() -> tuple[str, dict[str, Any]]:
            if self._env is None:
                self._env = self._pool._take()
            return self._env.reset(seed=seed, options=dict(options) or None)

        return await self._in_thread(take_and_reset)

    async def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Perform one step of the environment, as ``gymnasium.Env.step`` does."""
        env = self._env
        if env is None:
            raise RuntimeError("An environment must be reset before its first step.")
        text, reward, terminated, truncated, info = await self._in_thread(lambda: env.step(action))
        return text, float(reward), terminated, truncated, info

    @property
    def env_id(self) -> str:
        """The environment's Gymnasium id; empty before the first ``reset``, or if the environment has none."""
        spec = None if self._env is None else self._env.spec
        return spec.id if spec is not None else ""

    def release(self) -> None:
        """Return the environment to the pool, or close it if its state is no longer reliable. Never blocks."""
        if self._call is None:
            return
        with self._lock:
            self._abandoned = True
            if self._inside and not self._call.cancel():
                return  # the running call closes the environment when it ends
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
        self._call = self._pool._submit(carried(run))
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
