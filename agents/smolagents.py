"""Plays with an agent of smolagents; ``rstar2_env.adapters.smolagents`` says what survives."""

from __future__ import annotations

from ._their_agent import TheirAgent
from .base import AGENTS


class SmolAgents(TheirAgent):
    """Plays with an agent of smolagents: one of your own, or a tool-calling one for an endpoint."""

    framework = "smolagents"


AGENTS.register("smolagents", SmolAgents)
