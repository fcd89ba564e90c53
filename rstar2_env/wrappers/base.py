"""Common base class of wrappers: typed steps, access to the tool chain, and seeds with which episodes can restart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.env.turn_result import StepReturn as StepReturn
from rstar2_env.env.turn_result import TextEnv as TextEnv
from rstar2_env.tools.chain import Middleware


class SupportsToolUse(Protocol):
    """Protocol of an object to which wrappers add tool middleware, such as a ``ToolChain``."""

    def use(self, middleware: Middleware) -> None:
        """Add a middleware that encloses all existing ones."""
        ...


class TextWrapper(gym.Wrapper[str, str, str, str]):
    """A wrapper of a text environment; ``take`` steps the wrapped environment and returns the reward as a ``float``."""

    def take(self, action: str) -> StepReturn:
        """Take one step in the wrapped environment; the reward is a ``float``."""
        text, reward, terminated, truncated, info = self.env.step(action)
        return text, float(reward), terminated, truncated, info


def use_middleware(env: TextEnv, middleware: Middleware, wrapper: str) -> None:
    """Add a middleware to the tools of ``env``.

    Args:
        env: A text environment; ``env.unwrapped.tools`` is its tool chain.
        middleware: Called around every tool call.
        wrapper: Name of the wrapper, for the error message.

    Raises:
        ConfigurationError: The environment does not have a tool chain.
    """
    chain: SupportsToolUse | None = getattr(env.unwrapped, "tools", None)
    if chain is None or not callable(getattr(chain, "use", None)):
        raise ConfigurationError(
            f"{wrapper} acts on tool calls and needs a ToolChain as env.unwrapped.tools, which "
            f"{type(env.unwrapped).__name__} lacks. Derive the environment from rstar2_env.env.tool_env.ToolEnv."
        )
    chain.use(middleware)


class EpisodeSeeds:
    """Assigns every episode a known seed, so that the episode can be restarted even if ``reset`` received no seed.

    A seed passed to ``reset`` also determines the seeds that later resets without a seed draw.
    """

    def __init__(self) -> None:
        self._rng = np.random.default_rng()

    def next(self, seed: int | None) -> int:
        """Return the seed for the next reset: ``seed``, or a random seed if ``seed`` is ``None``."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
            return seed
        return int(self._rng.integers(2**31))


def log_parts(info: dict[str, Any], parts: Mapping[str, float]) -> None:
    """Record the components of a reward in ``info``; components of the wrapped environment become ``task/<name>``.

    The reward is the sum of the components without a slash in their name.
    """
    inner = info.get("reward_components") or {}
    info["reward_components"] = {**parts, **{f"task/{name}": value for name, value in inner.items()}}


def copied(options: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Copy the options of a reset, so that later changes to the caller's dict have no effect."""
    return None if options is None else dict(options)
