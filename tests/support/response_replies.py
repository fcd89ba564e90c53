"""Responses of a server of OpenAI's Responses API, for ``flaky_server`` to give."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

_numbers = itertools.count()


def message(text: str, *, refusal: str = "") -> dict[str, Any]:
    """An output item: a message of the assistant."""
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
    if refusal:
        part = {"type": "refusal", "refusal": refusal}
    one = {"id": f"msg_{next(_numbers)}", "type": "message", "role": "assistant", "status": "completed"}
    return {**one, "content": [part]}


def reasoning(encrypted: str | None = "gAAA", *, open_text: str = "") -> dict[str, Any]:
    """An output item: reasoning, encrypted, or as text, or neither."""
    one: dict[str, Any] = {"id": f"rs_{next(_numbers)}", "type": "reasoning", "summary": []}
    if encrypted is not None:
        one["encrypted_content"] = encrypted
    if open_text:
        one["content"] = [{"type": "reasoning_text", "text": open_text}]
    return one


def function_call(name: str, arguments: str, call_id: str = "call_1") -> dict[str, Any]:
    """An output item: a call of a tool."""
    one = {"id": f"fc_{next(_numbers)}", "type": "function_call", "status": "completed"}
    return {**one, "call_id": call_id, "name": name, "arguments": arguments}


def response(*items: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A whole response."""
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 12},
        "total_tokens": 120,
    }
    whole = {"id": f"resp_{next(_numbers)}", "object": "response", "created_at": 1.0, "model": "m"}
    settings = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {**whole, **settings, "status": "completed", "output": list(items), "usage": usage, **more}


def kinds(items: Iterable[Mapping[str, Any]]) -> list[str]:
    """The kinds of a request's items; a plain message has its role."""
    return [str(item.get("type") or item["role"]) for item in items]
