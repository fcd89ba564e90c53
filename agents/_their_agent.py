"""Base class of agents that run an agent of an external framework, such as LangGraph or smolagents.

Covered: a user's agent, which a function creates for every episode, or a plain agent for an endpoint. Not covered: the
adapters to the frameworks (``rstar2_env.adapters``), which are imported when an agent is made.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, ClassVar, Literal

from rstar2_env.adapters.base.loop_agent import LoopAgent
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import checked
from rstar2_env.core.options.user_code import find_user_code, user_code_name
from rstar2_env.dialects import Dialect


class TheirAgent(LoopAgent):
    """Plays an episode with an agent of an external framework.

    Args:
        factory: Function that creates the agent for an episode: ``./file.py:function``, ``module:function``, or the
            function itself. Its only argument is a ``RunningLoop``, called ``running`` here: ``env_tools(running)`` of
            the framework's adapter returns the tools for the agent, and ``running.system`` is the system message.
            Without a factory, a plain agent uses the model given by ``base_url`` and ``model``.
        base_url: The endpoint's URL including its version, such as ``http://127.0.0.1:8000/v1``.
        model: Name under which the endpoint serves the model.
        api_key_env: Environment variable that holds the API key; if it is not set, no key is sent.
        tools: ``"native"``: the agent receives the environment's tools in the form of its framework. ``"text"``: the
            agent receives no tools; it writes calls in the environment's dialect, and each of its final outputs is
            played unchanged as a turn.
        dialect: The environment's dialect.

    Raises:
        ConfigurationError: Neither ``factory`` nor an endpoint is given, or both are; or ``tools`` is ``"native"`` and
            the dialect cannot write every tool call.
        MissingExtraError: The framework is not installed.
    """

    framework: ClassVar[str]
    """Name of the adapter for the agent's framework, in ``rstar2_env.adapters``."""
    incidental = frozenset({"api_key_env"})
    determinism = "Requests contain the episode's seed; few endpoints give equal replies for equal seeds."

    @checked
    def __init__(
        self,
        factory: Any = None,
        base_url: str | None = None,
        model: str | None = None,
        api_key_env: str = "OPENAI_API_KEY",
        tools: Literal["native", "text"] = "native",
        dialect: Dialect | str = "rstar2",
    ) -> None:
        adapter = import_module(f"rstar2_env.adapters.{self.framework}")
        make: Callable[..., Any]
        if factory is not None:
            if base_url is not None or model is not None:
                raise ConfigurationError(
                    "The options `factory` (your own agent) and `base_url` with `model` (a plain agent) "
                    "cannot be combined: omit one of them."
                )
            make = self._own(factory)
        elif base_url is None or model is None:
            raise ConfigurationError(
                f"The agent {self.framework!r} needs options: `factory` (a function that creates your agent, such as "
                "./file.py:function), or, for a plain agent, `base_url` and `model` (a server and its model)."
            )
        else:
            key = os.environ.get(api_key_env)
            make = partial(adapter.endpoint_agent, base_url=base_url, model=model, api_key=key)
        super().__init__(adapter.start(make), dialect=dialect, native=tools == "native")

    def _own(self, factory: Any) -> Callable[..., Any]:
        own = user_code_name(factory) if isinstance(factory, str) else None
        found: Callable[..., Any] | None = (
            factory if own is None else find_user_code(own, "factory of agents", None, {})
        )
        if not callable(found):
            raise ConfigurationError(
                "The option `factory` must be a function, or the name of a function (./file.py:function "
                f"or module:function); got {factory!r}."
            )
        return found
