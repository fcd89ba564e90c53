"""Requests and responses of the Responses API: what is sent, what is kept, what is refused, and OpenAI's own types."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from flaky_server import FlakyServer, flaky
from response_replies import function_call, kinds, message, reasoning, response

from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.core.net.chat.reply import Usage
from rstar2_env.core.net.chat.responses import KeepReasoning, read_response, request_of
from rstar2_env.core.net.chat_endpoint import ChatEndpoint

HELLO: list[dict[str, Any]] = [{"role": "system", "content": "be good"}, {"role": "user", "content": "hello"}]
SCHEMA = {"type": "object", "properties": {"code": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "python", "description": "Run it.", "parameters": SCHEMA}}


def endpoint(server: FlakyServer, **options: Any) -> ChatEndpoint:
    return ChatEndpoint(f"{server.address}/v1", **{"retries": 2, "timeout_s": 20, "api": "responses", **options})


def read(*items: Any, **more: Any) -> Any:
    return read_response(response(*items, **more), "URL")


def test_a_request_has_the_fields_of_the_api() -> None:
    with flaky(lambda asked, number: (200, response(message("hi")))) as server:
        asks = endpoint(server, reasoning="encrypted")
        text = asks.complete(HELLO, model="m", max_tokens=9, temperature=0.5, seed=3, tools=[TOOL])
    assert text == "hi"
    (asked,) = server.asked
    assert asked.path == "/v1/responses"
    assert asked.body == {
        "model": "m",
        "max_output_tokens": 9,
        "temperature": 0.5,
        "tools": [{"type": "function", "strict": False, **TOOL["function"]}],  # type: ignore[dict-item]
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "instructions": "be good",
        "input": [{"role": "user", "content": "hello"}],
    }


def test_a_judge_neither_stores_nor_asks_for_reasoning() -> None:
    body = request_of(HELLO, {"model": "m"}, "none")
    assert body["store"] is False
    assert "include" not in body


def conversation(*items: Any) -> list[dict[str, Any]]:
    """A turn that called a tool, and its result."""
    call = {"id": "call_1", "type": "function", "function": {"name": "python", "arguments": "{}"}}
    said = {"role": "assistant", "content": None, "tool_calls": [call], "items": items, "response_id": "resp_7"}
    return [*HELLO, said, {"role": "tool", "tool_call_id": "call_1", "content": "42"}]


def test_encrypted_reasoning_is_sent_back_as_it_came_and_in_its_place() -> None:
    thought, called = reasoning("gXYZ"), function_call("python", "{}")
    body = request_of(conversation(thought, called), {}, "encrypted")
    output = {"type": "function_call_output", "call_id": "call_1", "output": "42"}
    assert body["input"] == [{"role": "user", "content": "hello"}, thought, called, output]
    assert "previous_response_id" not in body


@pytest.mark.parametrize(
    ("thought", "sent"),
    [(reasoning("gX"), True), (reasoning(None, open_text="I think"), True), (reasoning(None), False)],
)
def test_reasoning_travels_only_with_its_content(thought: Any, sent: bool) -> None:
    body = request_of(conversation(thought, function_call("python", "{}")), {}, "encrypted")
    assert ("reasoning" in kinds(body["input"])) is sent


def test_what_the_server_stores_is_named_and_not_sent_again() -> None:
    body = request_of(conversation(reasoning(), function_call("python", "{}")), {}, "stored")
    assert (body["store"], body["previous_response_id"], body["instructions"]) == (True, "resp_7", "be good")
    assert kinds(body["input"]) == ["function_call_output"]


def test_without_reasoning_a_turn_is_sent_as_its_text_and_its_calls() -> None:
    body = request_of(conversation(reasoning(), function_call("python", "{}")), {}, "none")
    assert kinds(body["input"]) == ["user", "function_call", "function_call_output"]
    assert body["input"][1] == {"type": "function_call", "call_id": "call_1", "name": "python", "arguments": "{}"}


def test_a_response_is_read_with_its_texts_calls_usage_and_items() -> None:
    items = (reasoning(), message("a"), message("b"), function_call("python", '{"x": 1}', "call_9"))
    reply = read(*items)
    assert (reply.text, reply.finish, reply.refusal, reply.usage) == ("ab", "tool_calls", "", Usage(100, 20))
    assert [(call.id, call.name, call.arguments) for call in reply.calls] == [("call_9", "python", '{"x": 1}')]
    assert reply.items == items
    assert reply.response_id.startswith("resp_")
    assert reply.trouble is None


@pytest.mark.parametrize(
    ("items", "more", "end"),
    [
        ([message("half")], {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "cut"),
        ([message("")], {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "refused"),
        ([message("", refusal="I cannot")], {}, "refused"),
        ([reasoning()], {}, "no_text"),
    ],
)
def test_a_response_that_cannot_be_played_says_why(items: Any, more: Any, end: str) -> None:
    trouble = read(*items, **more).trouble
    assert trouble is not None
    assert trouble[0] == end


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"choices": []}, "URL did not return a response"),
        ([1], "URL did not return a response"),
        ({"output": [{"type": "message"}]}, "URL did not return a response"),
        (response(status="queued"), "incomplete response, with the status 'queued'"),
    ],
)
def test_something_else_than_a_response_is_named(answer: Any, words: str) -> None:
    with pytest.raises(ServiceError, match=words):
        read_response(answer, "URL")


def failed(code: str) -> tuple[int, Any]:
    return 200, response(status="failed", error={"code": code, "message": "it broke"})


def test_a_response_that_failed_for_a_while_is_asked_for_again() -> None:
    answers = [failed("server_error"), (200, response(message("hi")))]
    with flaky(lambda asked, number: answers[number]) as server:
        assert endpoint(server).complete(HELLO, model="m") == "hi"
    assert len(server.asked) == 2


def test_a_response_that_failed_for_good_is_told_at_once() -> None:
    with (
        flaky(lambda asked, number: failed("invalid_prompt")) as server,
        pytest.raises(ServiceError, match="the response failed: invalid_prompt: it broke"),
    ):
        endpoint(server).complete(HELLO, model="m")
    assert len(server.asked) == 1


def test_stop_strings_are_refused_by_the_option() -> None:
    with pytest.raises(ConfigurationError, match="does not support stop strings"):
        request_of(HELLO, {"stop": ["x"]}, "none")


@pytest.mark.parametrize("keep", ["encrypted", "stored", "none"])
def test_requests_and_responses_fit_the_types_of_openai(keep: KeepReasoning) -> None:
    types = pytest.importorskip("openai.types.responses", reason="the package openai is not installed")
    pydantic = sys.modules["pydantic"]
    items = (reasoning(), message("hi"), function_call("python", "{}"))
    types.Response.model_validate(response(*items), strict=True)
    body = request_of(conversation(*items), {"model": "m", "max_tokens": 5, "tools": [TOOL], "seed": 1}, keep)
    for item in body["input"]:
        pydantic.TypeAdapter(types.ResponseInputItemParam).validate_python(item)
    pydantic.TypeAdapter(types.FunctionToolParam).validate_python(body["tools"][0])
    from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

    assert body.keys() <= ResponseCreateParamsNonStreaming.__annotations__.keys() | _inherited(
        ResponseCreateParamsNonStreaming
    )


def _inherited(kind: Any) -> set[str]:
    return {name for base in getattr(kind, "__orig_bases__", ()) for name in getattr(base, "__annotations__", {})}
