"""``ChatClient``: the client of an endpoint, shared within a process, with limits, cost accounting and a disk cache."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from rstar2_env.core.episode import ReplyEnd
from rstar2_env.core.errors import ServiceError, UnusableReplyError
from rstar2_env.core.net.chat.cache import ChatCache, digest
from rstar2_env.core.net.chat.limits import ChatLimits, Meter, Pace
from rstar2_env.core.net.chat.reply import ChatReply
from rstar2_env.core.net.chat.responses import ChatApi, KeepReasoning
from rstar2_env.core.net.chat_endpoint import ChatEndpoint
from rstar2_env.core.secret import Secret


@dataclass(frozen=True, slots=True)
class Priced:
    """A reply of an endpoint, with its cost.

    Attributes:
        reply: The reply.
        cost: Cost of the reply in the currency of the prices, 0 if it came from the cache; ``None`` if it is unknown.
        cached: Whether the reply came from the cache.
    """

    reply: ChatReply
    cost: float | None
    cached: bool


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Options of a ``ChatClient``; callers with equal options share a client.

    Attributes:
        base_url: URL of the endpoint, up to and including its version.
        api_key: Sent as a bearer token; ``None`` sends none.
        timeout_s: Seconds to wait for an answer.
        retries: Maximum number of further attempts after a temporary failure.
        limits: Limits on all requests together.
        cache: File of the cached replies; ``None`` for no cache.
        api: The API of the endpoint.
        reasoning: How reasoning is kept between turns; see ``KeepReasoning``.
    """

    base_url: str
    api_key: str | Secret | None = field(default=None, repr=False)
    timeout_s: float = 600.0
    retries: int = 6
    limits: ChatLimits = field(default_factory=ChatLimits)
    cache: Path | None = None
    api: ChatApi = "chat"
    reasoning: KeepReasoning = "none"


class ChatClient:
    """Requests replies from an endpoint within limits; any thread may use it. Get a client from ``shared_client``.

    Args:
        options: Options of the client.

    Attributes:
        meter: Counts the tokens and the cost so far.

    Raises:
        ConfigurationError: The address or a number is invalid, or the cache cannot be used.
    """

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        self._pace = Pace(options.limits)
        self._endpoint = ChatEndpoint(
            options.base_url,
            api_key=options.api_key,
            timeout_s=options.timeout_s,
            retries=options.retries,
            pace=self._pace,
            api=options.api,
            reasoning=options.reasoning,
        )
        self.meter = Meter(options.limits, self._endpoint.url)
        self._cache = None if options.cache is None else ChatCache(options.cache)

    def ask(self, messages: Sequence[Mapping[str, Any]], *, sample: Any = None, **fields: Any) -> Priced:
        """Request the next message of a conversation.

        Args:
            messages: The conversation.
            sample: Distinguishes equal requests that should have separate replies; a JSON-compatible value.
            **fields: The other fields of the request.

        Raises:
            EndpointBudgetError: The token or money budget is spent.
            UnusableReplyError: The endpoint refused the conversation for its content, or the conversation exceeds the
                model's context.
            ServiceError: The endpoint did not answer, or its answer does not have the format of its API.
        """
        name = digest(self._endpoint.url, {**fields, "messages": list(messages)}, sample) if self._cache else ""
        if self._cache is not None and (known := self._cache.get(name)) is not None:
            return Priced(self._endpoint.read(known), 0.0, True)
        with self._pace.seat():
            self.meter.check()
            try:
                answer = self._endpoint.ask(messages, **fields)
            except ServiceError as error:
                end = _ENDS.get(error.cause)
                # A conversation that is too long from the start is a mistake in the request, such as a max_tokens
                # beyond the model.
                if end is None or (end == "cut" and all(message["role"] != "assistant" for message in messages)):
                    raise
                raise UnusableReplyError(end, str(error)) from error
            reply = self._endpoint.read(answer)
            self._pace.add(reply.usage.tokens or 0)
            cost = self.meter.add(reply.usage)
        # A reply that cannot be played is not cached, so it is requested again after a resume.
        if self._cache is not None and reply.trouble is None:
            self._cache.put(name, answer)
        return Priced(reply, cost, False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle only the options: the other process creates its own client and budgets."""
        return shared_client, (self._options,)


def shared_client(options: ClientOptions) -> ChatClient:
    """Return the client with these options; callers share it as long as any caller holds it.

    Raises:
        ConfigurationError: The address or a number is invalid, or the cache cannot be used.
    """
    with _lock:
        client = _clients.get(options)
        if client is None:
            client = _clients[options] = ChatClient(options)
        return client


_ENDS: Mapping[str, ReplyEnd] = {"refused": "refused", "too_long": "cut"}
_clients: WeakValueDictionary[ClientOptions, ChatClient] = WeakValueDictionary()
_lock = threading.Lock()
