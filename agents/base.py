"""The interface of agents, and the registry in which agents are found by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rstar2_env.core.options.parts import PartSpec, make_part
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.user_code import Shape, is_class_with
from rstar2_env.env.agent import Agent, AnyAgent, InformedAgent

__all__ = ["AGENTS", "Agent", "AnyAgent", "InformedAgent", "make"]

AGENTS: Registry[Callable[..., AnyAgent]] = Registry(
    "agent",
    "rstar2_env.agents",
    "rstar2_env.agents",
    shape=Shape(is_class_with("reset", "act"), "a class with the methods reset and act"),
    listed_by="rstar2 list agents",
)


def make(agent: PartSpec, /, **options: Any) -> AnyAgent:
    """Create an agent.

    Args:
        agent: One of ``AGENTS.names()``, or your own code as ``module:Name`` or ``./file.py:Name``. Options may follow
            ("random_text:length=5"); they override ``**options`` of the same name.
        **options: Options of the agent.

    Raises:
        UnknownNameError: No agent has this name; the message suggests the closest one.
        ConfigurationError: The agent does not have an option or refuses its value, or the code cannot be found.
    """
    return make_part(AGENTS, agent, **options)
