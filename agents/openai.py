"""Plays with the model behind any OpenAI-compatible endpoint: chat completions, text in and text out.

Covered: everything that an evaluation needs: retries when the endpoint is overloaded (429, with ``Retry-After``) or
lost, time limits, a key from the environment. Not covered: training (an endpoint gives no token ids: use the engine
``vllm-server``), the endpoint's own tool calls (the environment's dialect is written as text), streaming.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from rstar2_env.core.chat_endpoint import ChatEndpoint

from .base import AGENTS


class OpenAIChat:
    """Requests every turn from an OpenAI-compatible endpoint; text only.

    Args:
        base_url: The endpoint's URL including its version, such as ``http://127.0.0.1:8000/v1``.
        model: The name under which it serves the model.
        api_key_env: Environment variable that holds the API key; if it is not set, no key is sent.
        temperature: Sampling temperature; ``None`` leaves it to the endpoint, as for the next two options.
        top_p: Probability mass of nucleus sampling, 0 to 1.
        max_tokens: Maximum number of tokens of one turn.
        stop: Strings at which the endpoint ends a turn; they are not part of the turn.
        seeded: Send a seed for each turn, derived from the episode's; few endpoints guarantee reproducible sampling.
        extra: Further fields of the request, such as ``{"reasoning_effort": "low"}``.
        timeout_s: Maximum time for one turn, in seconds.
        retries: Number of further attempts for one turn.

    Raises:
        ConfigurationError: ``base_url`` is not a URL, or a number is out of range.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key_env: str = "OPENAI_API_KEY",
        temperature: float | None = None,
        top_p: float | None = None,
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
        seeded: bool = True,
        extra: Mapping[str, Any] | None = None,
        timeout_s: float = 600.0,
        retries: int = 6,
    ) -> None:
        key = os.environ.get(api_key_env)
        self._endpoint = ChatEndpoint(base_url, api_key=key, timeout_s=timeout_s, retries=retries)
        given = {"temperature": temperature, "top_p": top_p, "max_tokens": max_tokens, "stop": list(stop) or None}
        self._fields = {"model": model, **{name: value for name, value in given.items() if value is not None}}
        self._fields |= extra or {}
        self._seeded = seeded
        self._messages: list[dict[str, str]] = []
        self._seed = 0

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Begin a conversation with the system message, if there is one.

        Args:
            observation: The text of the environment's ``reset``.
            info: The ``info`` of the environment's ``reset``; ``system`` is the system message.
            seed: Seed of the episode, from which each turn's seed is derived.
        """
        self._messages = [{"role": "system", "content": str(info["system"])}] if info.get("system") else []
        self._seed = seed

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Send the conversation with the new observation, and return the text of the reply.

        Raises:
            ServiceError: The endpoint did not answer or refused the request; the message quotes its response.
        """
        role = str(info.get("role", "user")) if self._spoken else "user"
        self._messages.append({"role": role, "content": observation})
        # Every turn of an episode has its own seed; endpoints accept seeds of at least 31 bits.
        seed = {"seed": (self._seed + self._spoken * 7919) % (1 << 31)} if self._seeded else {}
        turn = self._endpoint.complete(self._messages, **{**self._fields, **seed})
        self._messages.append({"role": "assistant", "content": turn})
        return turn

    @property
    def _spoken(self) -> int:
        return sum(message["role"] == "assistant" for message in self._messages)


AGENTS.register("openai", OpenAIChat)
