"""``openai``: plays with a model behind any OpenAI-compatible endpoint: chat completions or the Responses API.

Covered: native tool calls or the dialect's text, reasoning that the Responses API keeps between turns, unusable
replies, retries, rate limits, budgets of tokens and money, a cache on disk, an API key in an environment variable. Not
covered: streaming; training, because an endpoint does not return token ids (use the engine ``vllm-server``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from rstar2_env.core.errors import ConfigurationError, UnusableReplyError
from rstar2_env.core.net.chat.client import ClientOptions, Priced, shared_client
from rstar2_env.core.net.chat.limits import ChatLimits
from rstar2_env.core.net.chat.responses import ChatApi, KeepReasoning, check_fields
from rstar2_env.core.options.declare import call_with_options, checked
from rstar2_env.dialects import Dialect
from rstar2_env.env.conversation import Conversation

from .base import AGENTS


class OpenAIChat:
    """Plays turns that it requests from a model behind an OpenAI-compatible endpoint.

    Args:
        base_url: The endpoint's URL including its version, such as ``http://127.0.0.1:8000/v1``.
        model: Name under which the endpoint serves the model.
        api_key_env: Environment variable that holds the API key; if it is not set, no key is sent.
        tools: ``"text"``: the model writes calls in the environment's dialect, as in training. ``"native"``: requests
            contain the environment's tools; native calls are converted to the dialect's text, and tool results to
            native messages.
        temperature: Sampling temperature; ``None`` means the endpoint's default.
        top_p: Probability mass of nucleus sampling, 0 to 1; ``None`` means the endpoint's default.
        max_tokens: Maximum number of tokens of one turn; ``None`` means the endpoint's default.
        stop: Strings at which the endpoint ends a turn; they are not part of the turn.
        seeded: Send a seed with each request, derived from the episode's seed; few endpoints guarantee reproducible
            sampling.
        extra: Additional fields of the request, such as ``{"reasoning_effort": "low"}``.
        cut: How to treat a reply that was cut at its token limit: ``"drop"`` ends the episode, which is then not
            counted; ``"play"`` plays the partial reply.
        timeout_s: Maximum time for one turn, in seconds.
        retries: Number of additional attempts for one turn.
        limits: Rates and budgets that all agents of this process share at the endpoint; see ``ChatLimits``.
        cache: SQLite file that stores replies; a repeated request is not sent again.
        dialect: The environment's dialect.
        api: ``"chat"``: chat completions. ``"responses"``: the Responses API, which has neither seeds nor stop strings.
        reasoning: How the Responses API keeps reasoning between turns. ``"encrypted"``: requests contain it, encrypted
            by the server, which stores nothing. ``"stored"``: the server stores every response, and a request names the
            previous one. ``"none"``: the reasoning is dropped.

    Raises:
        ConfigurationError: ``base_url`` is not a URL, a number is out of range, the dialect cannot write native calls,
            or ``api="responses"`` is combined with ``stop``, or ``reasoning="stored"`` with ``cache``.
    """

    incidental = frozenset({"api_key_env", "timeout_s", "retries", "limits", "cache"})
    """Options that do not affect the turns; a resumed evaluation may have other values of these options."""
    determinism = "Requests contain a seed, unless seeded=false; few endpoints give equal replies for equal seeds."

    @checked
    def __init__(
        self,
        base_url: str,
        model: str,
        api_key_env: str = "OPENAI_API_KEY",
        tools: Literal["text", "native"] = "text",
        temperature: float | None = None,
        top_p: float | None = None,
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
        seeded: bool = True,
        extra: Mapping[str, Any] | None = None,
        cut: Literal["drop", "play"] = "drop",
        timeout_s: float = 600.0,
        retries: int = 6,
        limits: ChatLimits | Mapping[str, Any] | None = None,
        cache: str | None = None,
        dialect: Dialect | str = "rstar2",
        api: ChatApi = "chat",
        reasoning: KeepReasoning = "encrypted",
    ) -> None:
        if api == "chat" and reasoning == "stored":
            raise ConfigurationError(
                "reasoning='stored' is for the Responses API: set api='responses' too, or omit `reasoning`.",
                option=("reasoning", "api"),
            )
        if api == "responses":
            check_fields({"stop": stop or (extra or {}).get("stop")})
            if reasoning == "stored" and cache is not None:
                raise ConfigurationError(
                    "reasoning='stored' cannot be combined with a cache, because a cached reply refers to a response "
                    "that the server may have deleted: use reasoning='encrypted'.",
                    option=("cache", "reasoning"),
                )
        if not isinstance(limits, ChatLimits):
            limits = call_with_options("option 'limits'", ChatLimits, limits or {}, prefix="limits.")
        self._client = shared_client(
            ClientOptions(
                base_url,
                os.environ.get(api_key_env),
                timeout_s,
                retries,
                limits,
                None if cache is None else Path(cache),
                api,
                reasoning,
            )
        )
        given = {"temperature": temperature, "top_p": top_p, "max_tokens": max_tokens, "stop": list(stop) or None}
        self._fields = {"model": model, **{name: value for name, value in given.items() if value is not None}}
        self._fields |= extra or {}
        self._seeded, self._plays_cut = seeded and api == "chat", cut == "play"
        self._talk = Conversation(dialect, native=tools == "native")
        self._seed = self._spoken = 0
        self.usage: dict[str, float] = {}

    def reset(self, observation: str, info: Mapping[str, Any], *, seed: int) -> None:
        """Start a conversation, with the system message if there is one.

        Args:
            observation: The text that the environment's ``reset`` returned.
            info: The ``info`` that ``reset`` returned; ``system`` is the system message, ``tools`` the schemas.
            seed: Seed of the episode, from which each turn's seed is derived.
        """
        self._talk.begin(info)
        self._seed, self._spoken, self.usage = seed, 0, {}

    def reseed(self, seed: int) -> None:
        """Change the seed of all later turns, so that several turns can be requested in one state of an episode."""
        self._seed = seed

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Send the conversation with the new observation, and return the text of the reply.

        Raises:
            UnusableReplyError: The reply has no text, was cut or is a refusal.
            EndpointBudgetError: The token or money budget is used up.
            ServiceError: The endpoint did not answer or refused the request; the message quotes its response.
        """
        self._talk.add_observation(observation, str(info.get("role", "user")) if self._spoken else "user")
        # Every turn of an episode has its own seed; endpoints accept seeds of at least 31 bits.
        seed = {"seed": (self._seed + self._spoken * 7919) % (1 << 31)} if self._seeded else {}
        fields = {**self._fields, **self._talk.fields, **seed}
        answer = self._client.ask(self._talk.messages, sample=[self._seed, self._spoken], **fields)
        self._count(answer)
        trouble = answer.reply.trouble
        if trouble is not None and not (trouble[0] == "cut" and self._plays_cut and answer.reply.text.strip()):
            raise UnusableReplyError(*trouble)
        self._spoken += 1
        return self._talk.add_reply(answer.reply)

    def _count(self, answer: Priced) -> None:
        usage = answer.reply.usage
        taken = {
            "requests": 1.0,
            "cached": float(answer.cached),
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cost": answer.cost,
        }
        for name, value in taken.items():
            if value is not None:
                self.usage[name] = self.usage.get(name, 0.0) + value


AGENTS.register("openai", OpenAIChat)
