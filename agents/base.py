"""What an agent is, and the registry in which agents are found by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rstar2_env.core.options import call_with_options
from rstar2_env.core.registry import Registry
from rstar2_env.evaluation.play import Agent, AnyAgent, InformedAgent

__all__ = ["AGENTS", "Agent", "AnyAgent", "InformedAgent", "make"]

AGENTS: Registry[Callable[..., AnyAgent]] = Registry("agent", "rstar2_env.agents", "rstar2_env.agents")


def make(name: str, **options: Any) -> AnyAgent:
    """Return a new agent.

    Args:
        name: One of ``AGENTS.names()``.
        **options: Of that agent.

    Raises:
        UnknownNameError: No agent has that name; the message suggests the nearest.
        ConfigurationError: The agent has no such option, or refuses its value.
    """
    return call_with_options(f"agent {name!r}", AGENTS.get(name), options)
