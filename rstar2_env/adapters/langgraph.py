"""LangGraph (1.2): environment tools as LangChain tools, and graphs as players of episodes.

Covered: any compiled graph whose state has ``messages``, such as the graphs of ``create_agent`` and
``create_react_agent``, or a plain graph for an OpenAI-compatible endpoint; several messages in one episode; calls with
invalid JSON arguments: LangChain does not pass these to its tools, so they are played as malformed calls, and the graph
runs again on the results. Not covered: a call to a tool that does not exist, which LangGraph answers by itself, so that
no turn is played; token counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from uuid import uuid4

from rstar2_env.adapters.base.loop_agent import RunningLoop, StartLoop
from rstar2_env.adapters.tool_session import Toolbox
from rstar2_env.core.errors import MissingExtraError, UnusableReplyError

try:
    from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
    from langchain_core.tools import StructuredTool
    from langchain_openai import ChatOpenAI
    from langgraph.errors import GraphRecursionError
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition
except ImportError as error:
    raise MissingExtraError("langgraph", "The adapter 'langgraph'") from error

_MOST_STEPS = 200
"""Maximum number of steps of the graph in one run, including the steps of tools.

The environment's budgets end an episode earlier; this limits calls that never reach the environment.
"""


def env_tools(box: Toolbox) -> list[Any]:
    """Return the tools of an environment as LangChain tools.

    Args:
        box: A ``ToolSession``, or the ``RunningLoop`` that ``start`` passes to ``make``.
    """
    return [_tool(schema["function"], box) for schema in box.tools]


class GraphLoop:
    """A graph that plays an episode."""

    bare = False

    def __init__(self, graph: Any, running: RunningLoop) -> None:
        self._graph, self._running, self._messages = graph, running, list[Any]()
        # A graph with a checkpointer needs a thread id; messages have ids, so each is kept once.
        self._config = {"recursion_limit": _MOST_STEPS, "configurable": {"thread_id": uuid4().hex}}

    def ask(self, text: str) -> str:
        """Run the graph on the next message of the episode, and return the text of the graph's last message.

        Raises:
            UnusableReplyError: The run exceeded the limit of steps.
        """
        self._messages = [*self._messages, HumanMessage(text)]
        while True:
            try:
                self._messages = self._graph.invoke({"messages": self._messages}, self._config)["messages"]
            except GraphRecursionError as error:
                raise UnusableReplyError("cut", f"The run of the graph exceeded its limit of steps: {error}") from error
            last = self._messages[-1]
            broken = getattr(last, "invalid_tool_calls", ())
            if not broken:
                return str(last.text)
            for call in broken:
                shown = self._running.call(str(call["name"]), str(call["args"]))
                self._messages = [*self._messages, ToolMessage(shown, tool_call_id=call["id"])]


def start(make: Callable[[RunningLoop], Any]) -> StartLoop:
    """Return a function that starts an episode with a graph.

    Args:
        make: Function that makes the compiled graph for an episode. Its argument ``running`` represents the episode:
            ``env_tools(running)`` are the tools, ``running.system`` is the system message.
    """
    return partial(_start, make)


def endpoint_agent(running: RunningLoop, *, base_url: str, model: str, api_key: str | None = None) -> Any:
    """Make a plain graph in which a model behind an OpenAI-compatible endpoint alternates with the environment's tools.

    Args:
        running: The episode.
        base_url: URL of the endpoint, up to the version (``.../v1``).
        model: Name of the model at the endpoint.
        api_key: Key of the endpoint, if it needs one.
    """
    tools = env_tools(running)
    chat: Any = ChatOpenAI(base_url=base_url, model=model, api_key=api_key or "none", seed=running.seed % (1 << 31))
    if tools:
        chat = chat.bind_tools(tools)
    system = [SystemMessage(running.system)] if running.system else []

    def speak(state: MessagesState) -> dict[str, Any]:
        return {"messages": [chat.invoke([*system, *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("agent", speak)
    graph.add_edge(START, "agent")
    if tools:
        graph.add_node("tools", ToolNode(tools))
        graph.add_conditional_edges("agent", tools_condition)
        graph.add_edge("tools", "agent")
    return graph.compile()


def _start(make: Callable[[RunningLoop], Any], running: RunningLoop) -> GraphLoop:
    return GraphLoop(make(running), running)


def _tool(function: Mapping[str, Any], box: Toolbox) -> Any:
    def run(**arguments: Any) -> str:
        return box.call(function["name"], arguments)

    return StructuredTool(
        name=function["name"],
        description=function["description"],
        args_schema=dict(function["parameters"]),
        func=run,
    )
