"""``langgraph``: plays with a graph of LangGraph; see ``rstar2_env.adapters.langgraph`` for its limits."""

from __future__ import annotations

from ._their_agent import TheirAgent
from .base import AGENTS


class LangGraphAgent(TheirAgent):
    """Plays with a graph of LangGraph: your own, or a plain graph for an endpoint."""

    framework = "langgraph"


AGENTS.register("langgraph", LangGraphAgent)
