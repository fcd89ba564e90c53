"""``smolagents``: plays with an agent of smolagents; see ``rstar2_env.adapters.smolagents`` for its limits."""

from __future__ import annotations

from ._their_agent import TheirAgent
from .base import AGENTS


class SmolAgents(TheirAgent):
    """Plays with an agent of smolagents: your own, or a plain tool-calling agent for an endpoint."""

    framework = "smolagents"


AGENTS.register("smolagents", SmolAgents)
