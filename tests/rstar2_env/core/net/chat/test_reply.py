"""What endpoints reply, as they write it."""

from __future__ import annotations

from typing import Any

import pytest

from rstar2_env.core.errors import ServiceError
from rstar2_env.core.net.chat.reply import NativeCall, Usage, read_reply


def answer(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": "stop"}], **more}


def test_a_text_in_parts_is_one_text() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]
    assert read_reply(answer({"content": parts}), "u").text == "ab"


def test_calls_without_ids_get_numbers() -> None:
    calls = [{"function": {"name": "f", "arguments": "{}"}}, {"id": "x", "function": {"name": "g", "arguments": None}}]
    read = read_reply(answer({"content": None, "tool_calls": calls}), "u")
    assert read.calls == (NativeCall("call_0", "f", "{}"), NativeCall("x", "g", ""))
    assert read.trouble is None


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 4}, Usage(3, 4)),
        ({"prompt_tokens": 3, "completion_tokens": 4, "cost": 0.5}, Usage(3, 4, 0.5)),
        ({"prompt_tokens": None, "completion_tokens": True, "cost": -1}, Usage()),
        (None, Usage()),
    ],
)
def test_the_usage_is_what_the_endpoint_says_where_that_is_a_number(told: Any, usage: Usage) -> None:
    assert read_reply(answer({"content": "hi"}, usage=told), "u").usage == usage


@pytest.mark.parametrize(
    "other",
    [{}, [], "hi", {"choices": []}, {"choices": [{"message": None}]}, answer({"content": "hi", "tool_calls": [{}]})],
)
def test_something_else_than_a_completion_is_refused_with_what_it_is(other: Any) -> None:
    with pytest.raises(ServiceError, match="http://here did not return a chat completion"):
        read_reply(other, "http://here")
