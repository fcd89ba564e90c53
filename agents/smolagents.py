"""``smolagents``: plays with an agent of smolagents; ``rstar2_env.adapters.smolagents`` lists its limitations."""

from __future__ import annotations

from ._their_agent import TheirAgent
from .base import AGENTS


class SmolAgents(TheirAgent):
    """Plays with an agent of smolagents: your own, or a plain tool-calling agent with a model at an endpoint."""

    framework = "smolagents"


AGENTS.register("smolagents", SmolAgents)
