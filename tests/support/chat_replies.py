"""Replies of an OpenAI-compatible endpoint, for ``flaky_server`` to give."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any


def said(text: str | None, *calls: tuple[str, str], finish: str = "") -> dict[str, Any]:
    """A whole answer: a text, and native calls as the tool's name and the JSON of its arguments."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for number, (name, arguments) in enumerate(calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": finish or ("tool_calls" if calls else "stop")}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
    return {**whole, "choices": [choice], "usage": usage}


def numbered(reply: dict[str, Any], number: int) -> dict[str, Any]:
    """The same answer with ids of its own for its calls, which frameworks want to be unique."""
    fresh = copy.deepcopy(reply)
    for call in fresh["choices"][0]["message"].get("tool_calls", ()):
        call["id"] += f"-{number}"
    return fresh


def heard(body: Mapping[str, Any], role: str) -> list[str]:
    """The texts of a request's messages of a role."""
    return [_text(message["content"]) for message in body["messages"] if message["role"] == role]


def _text(content: str | Sequence[Mapping[str, Any]] | None) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


def arguments(**given: Any) -> str:
    """Arguments as JSON."""
    return json.dumps(given)
