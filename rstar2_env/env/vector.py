"""``ThreadVectorEnv``: a vector environment that steps its sub-environments in parallel, each in a thread.

A text environment spends most of a step waiting for a sandbox, a judge or a service. ``SyncVectorEnv`` steps the
environments one after the other, and ``AsyncVectorEnv`` needs a process per environment. Here all environments wait at
the same time, in one process with one shared sandbox. Covered: Gymnasium's autoreset modes and ``reset_mask``, with the
same results as ``SyncVectorEnv``. Not covered: environments that mostly compute in Python, which the interpreter lock
serializes (use ``AsyncVectorEnv``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import iterate

from rstar2_env.core.errors import ConfigurationError, EpisodeOverError
from rstar2_env.core.options.declare import Count, checked

_MODULE = "rstar2_env.env.vector"


class ThreadVectorEnv(SyncVectorEnv[Any, Any]):
    """Runs ``reset`` and ``step`` of all sub-environments in parallel, with the results of ``SyncVectorEnv``.

    Args:
        env_fns: Functions that each create one environment.
        autoreset_mode: Gymnasium's autoreset mode: ``NextStep``, ``SameStep`` or ``Disabled``.
        threads: Maximum number of sub-environments that run in parallel; all of them by default.

    Raises:
        ConfigurationError: There is no sub-environment, or ``threads`` is not a positive integer.
    """

    @checked
    def __init__(
        self,
        env_fns: Sequence[Callable[[], gym.Env[str, str]]],
        *,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        threads: Count | None = None,
    ) -> None:
        if not env_fns:
            raise ConfigurationError("A vector environment needs at least one sub-environment (num_envs of 1 or more).")
        # Texts cannot be changed in place, so there is nothing to copy.
        super().__init__([partial(_ahead, env_fn) for env_fn in env_fns], copy=False, autoreset_mode=autoreset_mode)
        self._size = threads or len(env_fns)
        self._threads: ThreadPoolExecutor | None = None

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset all sub-environments, or only the sub-environments that ``options["reset_mask"]`` selects.

        Args:
            seed: Seed of the first sub-environment (the others use ``seed + 1`` and so on), a list, or ``None``.
            options: Options for every sub-environment; ``reset_mask`` selects the sub-environments to reset.
        """
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, (int, np.integer)) else seed
        seeds = [None] * self.num_envs if seeds is None else list(seeds)
        mask = (options or {}).get("reset_mask")
        # Invalid seeds and masks are ignored here: Gymnasium rejects them below, before it resets anything.
        fits = mask is None or (isinstance(mask, np.ndarray) and mask.shape == (self.num_envs,) and mask.dtype == bool)
        if len(seeds) == self.num_envs and fits:
            own = {key: value for key, value in (options or {}).items() if key != "reset_mask"}
            chosen = [index for index in range(self.num_envs) if mask is None or mask[index]]
            # Like Gymnasium, pass the options as a dict if there is a mask, and unchanged otherwise.
            self._at_once(
                {
                    index: partial(self._env(index).reset_ahead, seeds[index], own if options is not None else None)
                    for index in chosen
                }
            )
        observations, infos = super().reset(seed=seeds, options=options)
        return tuple(observations), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all sub-environments; a sub-environment whose episode is over is reset as the autoreset mode requires.

        Raises:
            EpisodeOverError: The mode is ``Disabled`` and a sub-environment whose episode ended was not reset.
        """
        over = self._autoreset_envs
        if self.autoreset_mode is AutoresetMode.DISABLED and over.any():
            numbers = ", ".join(map(str, np.flatnonzero(over)))
            raise EpisodeOverError(
                f"The episodes of sub-environments {numbers} are over: reset them with "
                'options={"reset_mask": ...}, or choose another autoreset mode.'
            )
        turns = list(iterate(self.action_space, actions))
        if len(turns) != self.num_envs:
            raise ConfigurationError(
                f"Expected {self.num_envs} actions, one for each sub-environment; got {len(turns)}."
            )
        same_step = self.autoreset_mode is AutoresetMode.SAME_STEP
        next_step = self.autoreset_mode is AutoresetMode.NEXT_STEP
        self._at_once(
            {
                index: partial(self._env(index).reset_ahead, None, None)
                if next_step and over[index]
                else partial(self._env(index).step_ahead, turn, same_step)
                for index, turn in enumerate(turns)
            }
        )
        observations, rewards, terminated, truncated, infos = super().step(turns)
        return tuple(observations), rewards, terminated, truncated, infos

    def close_extras(self, **kwargs: Any) -> None:
        """Close the sub-environments and end the threads."""
        super().close_extras(**kwargs)
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None

    def _env(self, index: int) -> _Ahead:
        env = self.envs[index]
        assert isinstance(env, _Ahead)
        return env

    def _at_once(self, work: dict[int, Callable[[], None]]) -> None:
        """Run a function for each sub-environment, in threads; after an error, drop all results and raise the error."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._size, thread_name_prefix="rstar2-vector")
        futures: list[Future[None]] = [self._threads.submit(job) for job in work.values()]
        wait(futures)
        for future in futures:
            if (error := future.exception()) is not None:
                for env in self.envs:
                    if isinstance(env, _Ahead):
                        env.forget()
                raise error


class _Ahead(gym.Wrapper[str, str, str, str]):
    """Computes the next reset or step of an environment in a thread, and stores the result for ``SyncVectorEnv``."""

    def __init__(self, env: gym.Env[str, str]) -> None:
        super().__init__(env)
        self.forget()

    def forget(self) -> None:
        """Drop the results computed in advance."""
        self._step: Any = None
        self._reset: Any = None

    def reset_ahead(self, seed: int | None, options: dict[str, Any] | None) -> None:
        self._reset = self.env.reset(seed=seed, options=options)

    def step_ahead(self, action: str, reset_at_end: bool) -> None:
        self._step = self.env.step(action)
        if reset_at_end and (self._step[2] or self._step[3]):
            self._reset = self.env.reset()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Return the result of the reset that was computed in advance; if there is none, reset now."""
        done, self._reset = self._reset, None
        return self.env.reset(seed=seed, options=options) if done is None else done

    def step(self, action: str) -> Any:
        """Return the result of the step that was computed in advance; if there is none, step now."""
        done, self._step = self._step, None
        return self.env.step(action) if done is None else done


def _ahead(env_fn: Callable[[], gym.Env[str, str]]) -> _Ahead:
    return _Ahead(env_fn())


def make_threaded(
    env_id: str,
    num_envs: int = 1,
    *,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    threads: int | None = None,
    wrappers: Sequence[Callable[[gym.Env[str, str]], gym.Env[str, str]]] = (),
    **options: Any,
) -> ThreadVectorEnv:
    """Create ``num_envs`` environments of one id that are stepped in parallel.

    Args:
        env_id: A registered id.
        num_envs: Number of environments.
        autoreset_mode: See ``ThreadVectorEnv``.
        threads: See ``ThreadVectorEnv``.
        wrappers: Wrappers of every sub-environment, innermost first. (``gym.make_vec`` rejects ``wrappers`` for an
            environment with a vector form.)
        **options: Options of ``gym.make``.
    """

    def make() -> gym.Env[str, str]:
        env: gym.Env[str, str] = gym.make(env_id, **options)
        for wrapper in wrappers:
            env = wrapper(env)
        return env

    return ThreadVectorEnv([make] * num_envs, autoreset_mode=autoreset_mode, threads=threads)


def vector_entry_point(env_id: str) -> str:
    """Return the ``vector_entry_point`` of an id: a string, so that Gymnasium can write the ``EnvSpec`` as JSON."""
    return f"{_MODULE}:{env_id}"


def add_vector_forms(namespace: str = "rstar2") -> list[str]:
    """Set ``ThreadVectorEnv`` as the vector form of each registered id in a namespace, if the id has none yet.

    Returns:
        The ids that were changed.
    """
    added = []
    for env_id, spec in gym.registry.items():
        if spec.namespace == namespace and spec.vector_entry_point is None:
            spec.vector_entry_point = vector_entry_point(env_id)
            added.append(env_id)
    return added


def __getattr__(name: str) -> Callable[..., ThreadVectorEnv]:
    """Return the entry point of the id ``name``: a function that makes vector environments.

    Each id needs its own entry point, since Gymnasium does not pass the id to it.
    """
    if "-v" in name:
        return partial(make_threaded, name)
    raise AttributeError(f"module {_MODULE!r} has no attribute {name!r}")
