"""OpenAI's Responses API: converts chat-completions conversations to requests, and responses to ``ChatReply``.

Covered: system message, tools and their calls in both directions, reasoning that is kept between turns, token usage,
responses that were cut, refused or failed. Not covered: streaming, background responses, tools that the server runs.

``KeepReasoning`` determines how reasoning is kept between turns. ``encrypted`` requests encrypted reasoning and sends
every item of a response back unchanged, so that the server stores nothing. ``stored`` lets the server store each
response, and refers to the previous response by its id. ``none`` drops the reasoning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.core.net.chat.reply import ChatReply, NativeCall, Usage, count_of

ChatApi: TypeAlias = Literal["chat", "responses"]
"""The API of an endpoint: chat completions, or Responses."""
KeepReasoning: TypeAlias = Literal["encrypted", "stored", "none"]
"""How reasoning is kept between the turns of a conversation; only the Responses API can keep it."""

PATHS: Mapping[ChatApi, str] = {"chat": "/chat/completions", "responses": "/responses"}

_RENAMED = {"max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"}
_PASSING = frozenset({"server_error", "rate_limit_exceeded"})
_UNFINISHED = {"max_output_tokens": "length", "content_filter": "content_filter"}


def check_fields(fields: Mapping[str, Any]) -> None:
    """Check that the Responses API supports every field that a caller sets.

    Raises:
        ConfigurationError: The fields have stop strings, which the API does not support.
    """
    if fields.get("stop"):
        raise ConfigurationError(
            "The Responses API does not support stop strings: omit stop, or use api='chat'.", option="stop"
        )


def request_of(messages: Sequence[Mapping[str, Any]], fields: Mapping[str, Any], keep: KeepReasoning) -> dict[str, Any]:
    """Convert a conversation in the chat-completions format to the body of a Responses request.

    Args:
        messages: The conversation, in the form of chat completions. An assistant's message may have the items of its
            response (``ChatReply.items``) under ``items``, and the response's id under ``response_id``.
        fields: The other fields, in the form of chat completions; ``seed`` is dropped, since the API has none.
        keep: How reasoning is kept between turns; see ``KeepReasoning``.
    """
    check_fields(fields)
    body: dict[str, Any] = {
        _RENAMED.get(name, name): value for name, value in fields.items() if name not in ("seed", "tools", "stop")
    }
    if tools := fields.get("tools"):
        body["tools"] = [_tool(tool) for tool in tools]
    body["store"] = keep == "stored"
    if keep == "encrypted":
        included = [*body.get("include", ()), "reasoning.encrypted_content"]
        body["include"] = list(dict.fromkeys(included))
    rest = list(messages)
    if rest and rest[0]["role"] == "system":
        # The server does not store the system message with a response, so every request contains it.
        body["instructions"] = rest.pop(0)["content"]
    if keep == "stored":
        known = [at for at, message in enumerate(rest) if message.get("response_id")]
        if known:
            body["previous_response_id"] = rest[known[-1]]["response_id"]
            rest = rest[known[-1] + 1 :]
    body["input"] = [item for message in rest for item in _items(message, keep)]
    return body


def problem_of(answer: Any) -> tuple[str, str] | None:
    """Return ``None`` if a response did not fail; otherwise an error message and the ``ServiceError.cause``.

    The cause is ``passing`` if a retry may succeed, otherwise "".
    """
    if not isinstance(answer, Mapping) or answer.get("status") != "failed":
        return None
    error = answer.get("error")
    code, message = "", ""
    if isinstance(error, Mapping):
        code, message = str(error.get("code") or ""), str(error.get("message") or "")
    said = ": ".join(part for part in (code, message[:500]) if part) or "no reason given"
    return f"the model's server reported that the response failed: {said}", "passing" if code in _PASSING else ""


def read_response(answer: Any, url: str) -> ChatReply:
    """Convert a response of the API to a ``ChatReply``.

    Args:
        answer: The endpoint's answer, as JSON.
        url: The endpoint, for the error message.

    Raises:
        ServiceError: The answer is not a response, or its status is neither ``completed`` nor ``incomplete``.
    """
    try:
        status, items = str(answer.get("status") or "completed"), [dict(item) for item in answer["output"]]
        texts, refusals, calls = [], [], []
        for number, item in enumerate(items):
            kind = item.get("type")
            if kind == "message":
                for part in item["content"]:
                    if part["type"] == "refusal":
                        refusals.append(str(part["refusal"]))
                    elif part["type"] == "output_text":
                        texts.append(str(part["text"]))
            elif kind == "function_call":
                name, arguments = str(item["name"]), str(item["arguments"] or "")
                calls.append(NativeCall(str(item.get("call_id") or f"call_{number}"), name, arguments))
        why = (answer.get("incomplete_details") or {}).get("reason")
        usage = answer.get("usage") or {}
        reply = ChatReply(
            text="".join(texts),
            calls=tuple(calls),
            finish=_UNFINISHED.get(str(why), str(why or "")) or ("tool_calls" if calls else "stop"),
            refusal="\n".join(refusals),
            usage=Usage(count_of(usage.get("input_tokens")), count_of(usage.get("output_tokens"))),
            items=tuple(items),
            response_id=str(answer.get("id") or ""),
        )
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise ServiceError(f"{url} did not return a response of the Responses API: {str(answer)[:300]}") from error
    if status not in ("completed", "incomplete"):
        raise ServiceError(f"{url} returned an incomplete response, with the status {status!r}.")
    return reply


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a tool to the API's form: move the fields of ``function`` one level up; ``strict`` defaults to false."""
    function = tool.get("function")
    if not isinstance(function, Mapping):
        return dict(tool)
    return {"type": "function", "strict": False, **function}


def _items(message: Mapping[str, Any], keep: KeepReasoning) -> list[dict[str, Any]]:
    """Return a message as items of a request."""
    role = message["role"]
    if role == "tool":
        output = {"call_id": message["tool_call_id"], "output": message["content"]}
        return [{"type": "function_call_output", **output}]
    if keep == "encrypted" and message.get("items"):
        return [dict(item) for item in message["items"] if _travels(item)]
    said = [{"role": role, "content": message["content"]}] if message.get("content") else []
    calls = [
        {"type": "function_call", "call_id": call["id"], **call["function"]} for call in message.get("tool_calls", ())
    ]
    return [*said, *calls]


def _travels(item: Mapping[str, Any]) -> bool:
    """Whether a server that stores nothing can read an item: a reasoning item must include its content."""
    return item.get("type") != "reasoning" or bool(item.get("encrypted_content") or item.get("content"))
