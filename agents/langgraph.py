"""``langgraph``: plays the turns of a LangGraph graph; ``rstar2_env.adapters.langgraph`` lists its limitations."""

from __future__ import annotations

from ._their_agent import TheirAgent
from .base import AGENTS


class LangGraphAgent(TheirAgent):
    """Plays the turns of a LangGraph graph: your own, or a plain tool-calling graph with a model at an endpoint."""

    framework = "langgraph"


AGENTS.register("langgraph", LangGraphAgent)
