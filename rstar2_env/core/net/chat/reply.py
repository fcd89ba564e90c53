"""``ChatReply``: an endpoint's reply: text, native tool calls, finish reason, cost, whether it can be used as a turn.

Covered: the answers of chat completions, as OpenAI, vLLM, llama.cpp, OpenRouter and Azure write them. Not covered:
several choices, streaming, the Responses API (``responses``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rstar2_env.core.episode import ReplyEnd
from rstar2_env.core.errors import ServiceError

_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A tool call in the endpoint's own format, rather than as text in the reply.

    Attributes:
        id: Id of the call; the message with the call's result refers to it.
        name: Name of the tool.
        arguments: The arguments as the model wrote them, which should be a JSON object.
    """

    id: str
    name: str
    arguments: str

    def record(self) -> dict[str, Any]:
        """Return the call in the format in which an assistant message of a request contains it."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


@dataclass(frozen=True, slots=True)
class Usage:
    """Number of tokens and cost of a reply.

    Attributes:
        prompt_tokens: Tokens read; ``None`` if the endpoint does not report them.
        completion_tokens: Tokens written, including reasoning; ``None`` if the endpoint does not report them.
        cost: Cost of the reply; ``None`` if the endpoint does not report it.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None

    @property
    def tokens(self) -> int | None:
        """Number of tokens read and written; ``None`` if the endpoint does not report both."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The first choice of a chat completion, or a response of the Responses API.

    Attributes:
        text: Text of the reply; may be empty.
        calls: Native tool calls of the reply, in order.
        finish: Finish reason, as the endpoint reports it (``stop``, ``length``, ``tool_calls``, ``content_filter``).
        refusal: The model's message, if it refused to reply; otherwise empty.
        usage: Tokens and cost of the reply.
        items: The output items of a response, reasoning included, to be sent back unchanged; empty for a completion.
        response_id: Id of a response; empty for a completion.
    """

    text: str
    calls: tuple[NativeCall, ...]
    finish: str
    refusal: str
    usage: Usage
    items: tuple[Mapping[str, Any], ...] = ()
    response_id: str = ""

    @property
    def trouble(self) -> tuple[ReplyEnd, str] | None:
        """The episode's ``end`` and a message, if the reply cannot be played as a turn; ``None`` if it can."""
        if self.refusal or self.finish == "content_filter":
            return "refused", f"The model's server refused to reply: {self.refusal or 'its content filter'}."
        if self.finish == "length":
            return "cut", (
                "The model's reply was cut off at the limit of tokens, so it is incomplete; it begins "
                f"{self.text[:_SHOWN_CHARS]!r}."
            )
        if not self.calls and not self.text.strip():
            return "no_text", (
                "The model's reply contains neither text nor a tool call (finish reason: "
                f"{self.finish or 'not reported'})."
            )
        return None


def read_reply(answer: Any, url: str) -> ChatReply:
    """Convert an endpoint's chat completion to a ``ChatReply``.

    Args:
        answer: The endpoint's answer, as JSON.
        url: The endpoint, for the error message.

    Raises:
        ServiceError: The answer is not a chat completion.
    """
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        content = message.get("content")
        calls = tuple(_call(number, call) for number, call in enumerate(message.get("tool_calls") or ()))
        usage = answer.get("usage")
        return ChatReply(
            text=_text(content),
            calls=calls,
            finish=str(choice.get("finish_reason") or ""),
            refusal=str(message.get("refusal") or ""),
            usage=_usage(usage) if isinstance(usage, Mapping) else Usage(),
        )
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ServiceError(f"{url} did not return a chat completion: {str(answer)[:300]}") from error


def _text(content: Any) -> str:
    if isinstance(content, Sequence) and not isinstance(content, str):
        return "".join(str(part.get("text") or "") for part in content if part.get("type", "text") == "text")
    return str(content or "")


def _call(number: int, call: Mapping[str, Any]) -> NativeCall:
    function = call["function"]
    return NativeCall(str(call.get("id") or f"call_{number}"), str(function["name"]), str(function["arguments"] or ""))


def _usage(usage: Mapping[str, Any]) -> Usage:
    cost = usage.get("cost")
    return Usage(
        count_of(usage.get("prompt_tokens")),
        count_of(usage.get("completion_tokens")),
        float(cost) if isinstance(cost, (int, float)) and not isinstance(cost, bool) and cost >= 0 else None,
    )


def count_of(value: Any) -> int | None:
    """Return a number of tokens from an endpoint's answer; ``None`` if the value is not a number."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
