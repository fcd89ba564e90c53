"""Agents for text environments, one per file; ``rstar2_env.agents.make`` finds them by name."""

if __name__ != "rstar2_env.agents":
    raise ImportError(
        f"This folder is the package rstar2_env.agents; importing it as {__name__!r} would create a second copy of its "
        "registry. Install the distribution (pip install -e .) and import rstar2_env.agents."
    )

from ._autorace import write_criteria
from .base import AGENTS, Agent, AnyAgent, InformedAgent, make

__all__ = ["AGENTS", "Agent", "AnyAgent", "InformedAgent", "make", "write_criteria"]
