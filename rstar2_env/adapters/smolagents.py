"""smolagents (1.26): environment tools as tools of smolagents, and smolagents' agents as players of episodes.

Covered: ``ToolCallingAgent`` and ``CodeAgent``, your own agents or a plain agent for an OpenAI-compatible endpoint;
several messages in one episode. The argument of ``final_answer`` is a bare answer, so the adapter adds the answer tags
of the environment. Not covered: calls that smolagents rejects itself (unknown tools, arguments of a wrong type), for
which no turn is played and no status is counted; the white space around a result, which smolagents strips. A
``CodeAgent`` runs its program in smolagents' own interpreter, not in a sandbox of this package; in that interpreter,
the environment's tools are functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rstar2_env.adapters.base.loop_agent import RunningLoop, StartLoop
from rstar2_env.adapters.tool_session import Toolbox
from rstar2_env.core.errors import MissingExtraError

try:
    import smolagents
except ImportError as error:
    raise MissingExtraError("smolagents", "The adapter 'smolagents'") from error

_MOST_STEPS = 100
"""Maximum number of steps of the agent in one run.

It limits calls of tools that are not the environment's; the environment's own budgets end an episode earlier.
"""
_TYPES = ("string", "boolean", "integer", "number", "array", "object")


class SmolTool(smolagents.Tool):
    """One tool of an environment.

    Args:
        function: Schema of the tool: its name, description and parameters.
        box: The toolbox that runs the calls.
    """

    skip_forward_signature_validation = True
    output_type = "string"

    def __init__(self, function: Mapping[str, Any], box: Toolbox) -> None:
        required = function["parameters"].get("required", ())
        self.name, self.description = str(function["name"]), str(function["description"])
        self.inputs = {
            name: {
                **schema,
                "type": schema["type"] if schema.get("type") in _TYPES else "any",
                "description": schema.get("description") or f"The {name}.",
                **({} if name in required else {"nullable": True}),
            }
            for name, schema in function["parameters"].get("properties", {}).items()
        }
        self._required, self._box = frozenset(required), box
        super().__init__()

    def forward(self, **arguments: Any) -> str:
        """Run the call; an optional argument that is ``None`` is left out."""
        sent = {name: value for name, value in arguments.items() if value is not None or name in self._required}
        return self._box.call(self.name, sent)


def env_tools(box: Toolbox) -> list[SmolTool]:
    """Return the tools of an environment as smolagents tools.

    Args:
        box: A ``ToolSession``, or the ``RunningLoop`` that ``start`` passes to ``make``.
    """
    return [SmolTool(schema["function"], box) for schema in box.tools]


class SmolLoop:
    """An agent of smolagents that plays an episode."""

    bare = True

    def __init__(self, agent: Any) -> None:
        self._agent, self._first = agent, True

    def ask(self, text: str) -> str:
        """Run the agent on a message, with its memory of earlier messages, and return its final answer."""
        first, self._first = self._first, False
        found = self._agent.run(text, reset=first)
        return "" if found is None else str(getattr(found, "output", found))


def start(make: Callable[[RunningLoop], Any]) -> StartLoop:
    """Return a function that starts an episode with an agent of smolagents.

    Args:
        make: Function that makes the agent for an episode. Its argument ``running`` represents the episode:
            ``env_tools(running)`` are the tools, ``running.system`` is the system message.
    """
    return partial(_start, make)


def endpoint_agent(running: RunningLoop, *, base_url: str, model: str, api_key: str | None = None) -> Any:
    """Make a plain tool-calling agent with a model behind an OpenAI-compatible endpoint.

    Args:
        running: The episode.
        base_url: URL of the endpoint, up to the version (``.../v1``).
        model: Name of the model at the endpoint.
        api_key: Key of the endpoint, if it needs one.
    """
    served = smolagents.OpenAIModel(model, api_base=base_url, api_key=api_key or "none", seed=running.seed % (1 << 31))
    return smolagents.ToolCallingAgent(
        tools=env_tools(running),
        model=served,
        instructions=running.system or None,
        max_steps=_MOST_STEPS,
        verbosity_level=smolagents.LogLevel.OFF,
        max_tool_threads=1,
    )


def _start(make: Callable[[RunningLoop], Any], running: RunningLoop) -> SmolLoop:
    return SmolLoop(make(running))
