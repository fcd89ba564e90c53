"""OpenAI Agents SDK (``openai-agents`` 0.24): environment tools as tools of the SDK, and the SDK's agents as players.

Covered: your own agents, with hand-offs and further tools, or a plain agent for an OpenAI-compatible endpoint; several
messages in one episode; invalid JSON arguments, which reach the environment as a malformed call.
Not covered: a call to a tool that does not exist, which the SDK answers by itself, so that no turn is played; token
counts; tracing, which is off, since it would send episodes to a service.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Mapping
from functools import lru_cache, partial
from typing import Any, TypeVar

from rstar2_env.adapters.base.loop_agent import RunningLoop, StartLoop
from rstar2_env.adapters.tool_session import Toolbox
from rstar2_env.core.errors import MissingExtraError, UnusableReplyError

try:
    from openai import AsyncOpenAI

    import agents as sdk

    if not hasattr(sdk, "Runner"):  # this is the package ``agents`` of this repository, not the SDK
        raise ImportError("the installed module 'agents' does not belong to the OpenAI Agents SDK")
except ImportError as error:
    raise MissingExtraError("openai-agents", "The adapter 'openai_agents'") from error

T = TypeVar("T")
_MOST_TURNS = 100
"""Maximum number of turns of the agent in one run.

It limits calls of tools that are not the environment's; the environment's own budgets end an episode earlier.
"""


def env_tools(box: Toolbox) -> list[Any]:
    """Return the tools of an environment as tools of the SDK.

    Args:
        box: A ``ToolSession``, or the ``RunningLoop`` that ``start`` passes to ``make``.
    """
    return [_tool(schema["function"], box) for schema in box.tools]


class SdkLoop:
    """An agent of the SDK that plays an episode."""

    bare = False

    def __init__(self, agent: Any) -> None:
        self._agent, self._history = agent, list[Any]()

    def ask(self, text: str) -> str:
        """Run the agent on the next message of the episode, and return its final output.

        Raises:
            UnusableReplyError: The model refused, or the run exceeded the limit of turns.
        """
        said = [*self._history, {"role": "user", "content": text}]
        config = sdk.RunConfig(tracing_disabled=True, tool_not_found_behavior="return_error_to_model")
        try:
            result = _in_loop(sdk.Runner.run(self._agent, said, max_turns=_MOST_TURNS, run_config=config))
        except sdk.exceptions.ModelRefusalError as error:
            raise UnusableReplyError("refused", f"The model refused to reply: {error}") from error
        except sdk.MaxTurnsExceeded as error:
            raise UnusableReplyError("cut", f"The run of the agent exceeded its limit of turns: {error}") from error
        self._history = result.to_input_list()
        return "" if result.final_output is None else str(result.final_output)


def start(make: Callable[[RunningLoop], Any]) -> StartLoop:
    """Return a function that starts an episode with an agent of the SDK.

    Args:
        make: Function that makes the agent for an episode. Its argument ``running`` represents the episode:
            ``env_tools(running)`` are the tools, ``running.system`` is the system message.
    """
    return partial(_start, make)


def endpoint_agent(running: RunningLoop, *, base_url: str, model: str, api_key: str | None = None) -> Any:
    """Make a plain agent with a model behind an OpenAI-compatible chat-completions endpoint.

    Args:
        running: The episode.
        base_url: URL of the endpoint, up to the version (``.../v1``).
        model: Name of the model at the endpoint.
        api_key: Key of the endpoint, if it needs one.
    """
    client = _client(base_url, api_key or "none", os.getpid())
    return sdk.Agent(
        name="player",
        instructions=running.system or None,
        tools=env_tools(running),
        model=sdk.OpenAIChatCompletionsModel(model=model, openai_client=client),
        model_settings=sdk.ModelSettings(extra_body={"seed": running.seed % (1 << 31)}),
    )


@lru_cache(maxsize=16)
def _client(base_url: str, api_key: str, pid: int) -> Any:
    """Return the client that all episodes of the process ``pid`` share, so that its connections are reused."""
    return AsyncOpenAI(base_url=base_url, api_key=api_key)


def _start(make: Callable[[RunningLoop], Any], running: RunningLoop) -> SdkLoop:
    return SdkLoop(make(running))


def _tool(function: Mapping[str, Any], box: Toolbox) -> Any:
    async def invoke(context: Any, arguments: str) -> str:
        return await asyncio.wrap_future(box.later(function["name"], arguments))

    return sdk.FunctionTool(
        name=function["name"],
        description=function["description"],
        params_json_schema=dict(function["parameters"]),
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


_made: list[asyncio.AbstractEventLoop] = []
_making = threading.Lock()
os.register_at_fork(after_in_child=_made.clear)


def _in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the event loop that all episodes share: a client's open connections belong to one loop."""
    with _making:
        if not _made:
            _made.append(asyncio.new_event_loop())
            threading.Thread(target=_made[0].run_forever, name="agents' event loop", daemon=True).start()
    return asyncio.run_coroutine_threadsafe(work, _made[0]).result()
