"""Plays with a graph of LangGraph; ``rstar2_env.adapters.langgraph`` says what survives."""

from __future__ import annotations

from ._their_agent import TheirAgent
from .base import AGENTS


class LangGraphAgent(TheirAgent):
    """Plays with a graph of LangGraph: one of your own, or a plain one for an endpoint."""

    framework = "langgraph"


AGENTS.register("langgraph", LangGraphAgent)
