"""Claims about the forms in which data sets write conversations, and what becomes of each."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from conversation_rows import APIGEN, GLAIVE, MAGICODER, NEMOTRON, SCHEMA, TOOLACE, TULU
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.core.episode import Message
from rstar2_env.dialects.rstar2 import Rstar2Dialect
from rstar2_env.tools import PYTHON_TOOL_NAME
from rstar2_env.traces.conversations.apigen import apigen
from rstar2_env.traces.conversations.base import UnusableError, checked
from rstar2_env.traces.conversations.catalog import Convert
from rstar2_env.traces.conversations.chat import input_output, messages
from rstar2_env.traces.conversations.glaive import glaive
from rstar2_env.traces.conversations.programs import programs
from rstar2_env.traces.conversations.toolace import read_calls, toolace

FORMS: list[tuple[Convert, dict[str, Any]]] = [
    (toolace, TOOLACE),
    (apigen, APIGEN),
    (glaive, GLAIVE),
    (programs, MAGICODER),
    (messages, TULU),
    (input_output, NEMOTRON),
]


def calls(message: Message) -> list[tuple[str, Any]]:
    read = Rstar2Dialect().calls(message.content)
    assert all(call.problem is None for call in read)
    return [(call.name, call.arguments) for call in read]


def roles(found: list[Message]) -> str:
    return " ".join(message.role for message in found)


def test_toolace_becomes_calls_that_the_dialect_reads() -> None:
    found = toolace(TOOLACE)
    assert roles(found) == "system user assistant user assistant"
    assert found[0].content.startswith("You know functions.\n\n# Tools")
    assert json.dumps(SCHEMA) in found[0].content
    assert "[f(x=1)]" not in found[0].content
    assert calls(found[2]) == [
        ("get weather", {"city": "Oslo, 'N'", "days": [1, 2], "hourly": True}),
        ("get weather", {}),
    ]
    assert found[3].content == '<tool_response>\n[{"warm": 3}]\n</tool_response>'


@pytest.mark.parametrize(
    ("said", "arguments"),
    [
        ("[f(a={'x': [1, null]}, b=-1.5)]", {"a": {"x": [1, None]}, "b": -1.5}),
        ('[f(a="], g(")]', {"a": "], g("}),
        ('[f(a="\\", b=1")]', {"a": '", b=1'}),
    ],
)
def test_arguments_are_read_as_values(said: str, arguments: dict[str, Any]) -> None:
    assert read_calls(said) == [("f", arguments)]


@pytest.mark.parametrize(
    "said", ["[f(a=open('x'))]", "[f(1)]", "[f(a=x)]", "[f(**{})]", "[f(a=1]", "[f(a=(1+)]", "[f(x) g]", "[f(x={[1]})]"]
)
def test_nothing_but_values_is_read(said: str) -> None:
    with pytest.raises(UnusableError):
        read_calls(said)


def test_an_apostrophe_in_a_name_opens_no_text() -> None:
    assert read_calls("[today's news(n=1), f(x='a, b')]") == [("today's news", {"n": 1}), ("f", {"x": "a, b"})]


def test_a_list_of_calls_that_is_too_long_is_not_read() -> None:
    with pytest.raises(UnusableError, match="too long"):
        read_calls(f"[f(a='{'x' * 20_000}')]")


def test_a_list_that_is_no_call_is_a_turn() -> None:
    assert read_calls("[1, 2]") == []


def test_apigen_ends_with_the_policys_last_turn() -> None:
    found = apigen(APIGEN)
    assert roles(found) == "system user assistant user assistant"
    assert calls(found[2]) == [("get weather", {"city": "Oslo"})]
    assert found[3].content.startswith("<tool_response>\n")
    assert found[-1].content == "3 degrees."


def test_a_call_without_arguments_has_none() -> None:
    asked, called = APIGEN["conversations"][0], {"from": "function_call", "value": '{"name": "f", "arguments": ""}'}
    assert calls(apigen({**APIGEN, "conversations": [asked, called]})[-1]) == [("f", {})]


@pytest.mark.parametrize("turns", [None, 5, "text", ["text"], [None], {"from": "user", "value": "x"}])
@pytest.mark.parametrize(("convert", "row"), [(toolace, TOOLACE), (apigen, APIGEN)])
def test_turns_of_another_form_are_left_out(convert: Convert, row: dict[str, Any], turns: Any) -> None:
    with pytest.raises(UnusableError, match="the turns are not a list of mappings"):
        convert({**row, "conversations": turns})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "user", "[f(x={[1]})]", "{", "[{"]),
    lambda values: st.lists(values, max_size=2) | st.dictionaries(st.text(max_size=2), values, max_size=2),
    max_leaves=4,
)


@given(st.data())
def test_whatever_a_row_holds_it_is_a_conversation_or_left_out(data: st.DataObject) -> None:
    convert, row = data.draw(st.sampled_from(FORMS))
    changed = json.loads(json.dumps(row))
    for _ in range(data.draw(st.integers(1, 3))):
        at: Any = changed
        while True:  # somewhere in the row
            key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
            if not (isinstance(at[key], (dict, list)) and at[key] and data.draw(st.booleans())):
                break
            at = at[key]
        at[key] = data.draw(VALUES)
    with suppress(UnusableError):
        assert checked(convert(changed))


def test_glaive_is_divided_into_turns_and_its_quoted_arguments_are_read() -> None:
    found = glaive(GLAIVE)
    assert roles(found) == "system user assistant user assistant user assistant"
    assert found[0].content.count(json.dumps(SCHEMA)) == 2
    assert calls(found[2]) == [("get weather", {"city": "O'Hare"})]
    assert found[3].content == '<tool_response>\n{"warm": 3}\n</tool_response>'
    assert found[-1].content == "You are welcome!"
    assert glaive({**GLAIVE, "chat": GLAIVE["chat"] + "\n\n\nUSER: Bye."}) == found, "nobody answers that"


def test_glaive_without_functions_has_no_tools() -> None:
    found = glaive({"system": "SYSTEM: You are helpful.\n", "chat": "USER: Hi\n\n\nASSISTANT: Hi! <|endoftext|>\n"})
    assert [message.content for message in found] == ["You are helpful.", "Hi", "Hi!"]


def test_glaive_keeps_what_is_said_before_a_call_and_reads_schemas_with_commas_between() -> None:
    other = {**SCHEMA, "name": "prévision"}
    system = f"SYSTEM: You are helpful.\n{json.dumps(SCHEMA)},\n{json.dumps(other)}"
    found = glaive(
        {**GLAIVE, "system": system, "chat": GLAIVE["chat"].replace("<functioncall>", "Wait. <functioncall>")}
    )
    assert '"name": "prévision"' in found[0].content
    assert found[2].content.startswith("Wait.\n<tool_call>")
    assert [name for name, _ in calls(found[2])] == ["get weather"]


def test_a_program_becomes_a_call_of_the_python_tool_and_nothing_is_made_up_after_it() -> None:
    found = programs(MAGICODER)
    assert roles(found) == "system user assistant"
    assert calls(found[2]) == [(PYTHON_TOOL_NAME, {"code": "print(1 + 2)", "input": ""})]
    assert PYTHON_TOOL_NAME in found[0].content


def test_the_language_that_a_row_names_counts_before_that_of_its_block() -> None:
    row = {"problem": "Add.", "solution": "```\nprint(3)\n```", "lang": "Python"}
    assert calls(programs(row)[2])[0][1]["code"] == "print(3)"
    with pytest.raises(UnusableError, match="program"):
        programs({**row, "lang": "java", "solution": "```python\nprint(3)\n```"})


@pytest.mark.parametrize(
    "response",
    [
        "no program",
        "```python\nx\n```\n```python\ny\n```",
        "```java\nx;\n```",
        "```python\ndef f(:\n```",
        "```\nx\n```",
    ],
)
def test_a_response_without_one_valid_program_in_python_is_left_out(response: str) -> None:
    with pytest.raises(UnusableError, match="program"):
        programs({"instruction": "Do it.", "response": response})


def test_conversations_without_tools_keep_their_messages() -> None:
    assert roles(messages(TULU)) == "user assistant"
    assert [message.content for message in input_output(NEMOTRON)] == ["Hello?", "Hello!"]
    assert input_output({**NEMOTRON, "input": "Hello?", "system_prompt": "Be brief."})[0] == Message(
        "system", "Be brief."
    )


@pytest.mark.parametrize("change", [{"reasoning": "on"}, {"output": "<think>x</think>y"}, {"output": None}])
def test_what_reasons_or_says_nothing_is_left_out(change: dict[str, Any]) -> None:
    with pytest.raises(UnusableError):
        input_output({**NEMOTRON, **change})


@pytest.mark.parametrize(
    "turns",
    [
        [],
        ["user"],
        ["assistant", "user"],
        ["user", "assistant", "user"],
        ["user", "user", "assistant"],
        ["tool", "user"],
    ],
)
def test_turns_that_do_not_alternate_are_left_out(turns: list[str]) -> None:
    with pytest.raises(UnusableError):
        messages({"messages": [{"role": role, "content": "x"} for role in turns]})


def test_an_empty_turn_is_refused_and_an_empty_system_message_left_out() -> None:
    said = [{"role": "system", "content": " "}, {"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    assert roles(messages({"messages": said})) == "user assistant"
    with pytest.raises(UnusableError, match="a turn is empty"):
        messages({"messages": [*said[1:2], {**said[2], "content": "\n"}]})


@pytest.mark.parametrize(
    "mark",
    ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_call>", "<tool_response>", "<think>", "</think>"],
)
def test_a_text_cannot_open_a_turn_or_a_call(mark: str) -> None:
    with pytest.raises(UnusableError, match="special tags"):
        messages({"messages": [{"role": "user", "content": f"x {mark}"}, {"role": "assistant", "content": "y"}]})
