"""Convert conversations of public data sets to the dialect ``rstar2``, for supervised fine-tuning.

Data sets of tool use have their own formats of calls; here calls become JSON between tags, and results become an
environment's observations. Covered: system message with the tools' schemas, calls, results, and the conditions under
which a conversation is unusable. Not covered: whether a call is right, since it cannot be replayed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rstar2_env.core.episode import Message
from rstar2_env.core.status import ToolStatus
from rstar2_env.dialects.prompts import TOOLS_SECTION
from rstar2_env.dialects.rstar2 import Rstar2Dialect
from rstar2_env.tools.base import ToolResult

MARKS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_call>", "<tool_response>", "<think>", "</think>")
"""Texts that a conversation must not contain: they would open further turns, calls or reasoning."""

_dialect = Rstar2Dialect()


class UnusableError(ValueError):
    """A row cannot be converted to a conversation; the message is a short reason, by which such rows are counted."""


def system_message(text: str, schemas: Sequence[Any] = ()) -> Message:
    """Return the system message of a conversation.

    Args:
        text: The system text of the data set, without the schemas.
        schemas: The tools' JSON schemas.
    """
    if not schemas:
        return Message("system", text.strip())
    lines = "\n".join(json.dumps(schema, ensure_ascii=False) for schema in schemas)
    return Message("system", text.strip() + TOOLS_SECTION.replace("%s", lines, 1))


def calls_message(calls: Sequence[tuple[str, Mapping[str, Any]]], before: str = "") -> Message:
    """Return a turn of the policy that calls tools.

    Args:
        calls: Name and arguments of each call.
        before: The policy's text before the calls.

    Raises:
        UnusableError: JSON cannot hold the arguments.
    """
    try:
        written = [_dialect.format_call(name, arguments) for name, arguments in calls]
    except (TypeError, ValueError) as error:
        raise UnusableError("the arguments of a tool call are not valid JSON") from error
    return Message("assistant", "\n".join([*([before.strip()] if before.strip() else []), *written]))


def results_message(*texts: str) -> Message:
    """Return a message with the results of tools, in the form in which the environment shows them."""
    return Message("user", _dialect.results([ToolResult("", ToolStatus.OK, text) for text in texts]))


def checked(messages: Sequence[Message]) -> list[Message]:
    """Check that messages are a conversation to train on, and return them without an empty system message.

    Raises:
        UnusableError: The turns do not alternate between user and policy, or a turn is empty.
    """
    turns = list(messages[1:] if messages and messages[0].role == "system" else messages)
    if [message.role for message in turns] != ["user", "assistant"] * (len(turns) // 2) or not turns:
        raise UnusableError("the turns of user and policy do not alternate")
    if any(not message.content.strip() for message in turns):
        raise UnusableError("a turn is empty")
    return [message for message in messages if message.role != "system" or message.content]


def turns_of(row: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """Return the speaker and the text of each turn in a row with ``conversations``.

    Args:
        row: ``conversations`` is a list of mappings with ``from`` and ``value``.

    Raises:
        UnusableError: ``conversations`` is not such a list, or a turn has no usable text.
    """
    turns = row.get("conversations")
    if not isinstance(turns, (list, tuple)) or not all(isinstance(turn, Mapping) for turn in turns):
        raise UnusableError("the turns are not a list of mappings")
    for turn in turns:
        yield turn.get("from"), plain(turn.get("value"))


def plain(text: Any) -> str:
    """Check and return a text of a data set.

    Raises:
        UnusableError: The value is not a string, or contains special tags of a chat template, a tool call or a
            reasoning block.
    """
    if not isinstance(text, str):
        raise UnusableError("the text of a message is not a string")
    if any(mark in text for mark in MARKS):
        raise UnusableError("a text contains special tags of a chat template, of a tool call or of a reasoning block")
    return text


def parse_json(text: str) -> Any:
    """Parse JSON.

    Raises:
        UnusableError: The text is not valid JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnusableError("a tool call or the schema of a tool is not valid JSON") from error


def named_call(found: Any) -> tuple[str, Mapping[str, Any]]:
    """Return the name and the arguments of a parsed JSON call, whose arguments may be a string of JSON.

    Raises:
        UnusableError: The call has no name, or its arguments are not an object.
    """
    arguments = found.get("arguments") if isinstance(found, Mapping) else None
    if isinstance(arguments, str):
        arguments = parse_json(arguments or "{}")
    if not isinstance(found, Mapping) or not isinstance(found.get("name"), str) or not isinstance(arguments, Mapping):
        raise UnusableError("a tool call does not have a name, or its arguments are not an object")
    return found["name"], arguments
