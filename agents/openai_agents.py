"""``openai_agents``: plays with an agent of the OpenAI Agents SDK; see ``rstar2_env.adapters.openai_agents``."""

from __future__ import annotations

from ._their_agent import TheirAgent
from .base import AGENTS


class OpenAIAgents(TheirAgent):
    """Plays with an agent of the OpenAI Agents SDK: your own, or a plain agent with a model at an endpoint."""

    framework = "openai_agents"


AGENTS.register("openai_agents", OpenAIAgents)
