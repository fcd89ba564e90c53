"""A conversation for a cold start, written as a policy of the dialect ``rstar2`` would write it.

Data sets of tool use write calls in forms of their own; here they become JSON between tags, and results what an
environment shows. Covered: system message with the tools' schemas, calls, results, and what makes a conversation
unusable. Not covered: whether a call is right, which nobody can replay.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rstar2_env.core.episode import Message
from rstar2_env.core.status import ToolStatus
from rstar2_env.dialects.rstar2 import TOOLS_SECTION, Rstar2Dialect
from rstar2_env.tools.base import ToolResult

MARKS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_call>", "<tool_response>", "<think>", "</think>")
"""Texts that a conversation may not bring: they would open turns, calls or reasoning of their own."""

_dialect = Rstar2Dialect()


class UnusableError(ValueError):
    """A row that no conversation can be made of; the message says why, in words that many rows share."""


def system_message(text: str, schemas: Sequence[Any] = ()) -> Message:
    """The system message of a conversation.

    Args:
        text: What the data set says, without the schemas.
        schemas: The tools' JSON schemas.
    """
    if not schemas:
        return Message("system", text.strip())
    lines = "\n".join(json.dumps(schema, ensure_ascii=False) for schema in schemas)
    return Message("system", text.strip() + TOOLS_SECTION.replace("%s", lines, 1))


def calls_message(calls: Sequence[tuple[str, Mapping[str, Any]]], before: str = "") -> Message:
    """A turn of the policy that calls tools.

    Args:
        calls: Name and arguments of each.
        before: What the policy says before.

    Raises:
        UnusableError: JSON cannot hold the arguments.
    """
    try:
        written = [_dialect.format_call(name, arguments) for name, arguments in calls]
    except (TypeError, ValueError) as error:
        raise UnusableError("a call's arguments are no JSON") from error
    return Message("assistant", "\n".join([*([before.strip()] if before.strip() else []), *written]))


def results_message(*texts: str) -> Message:
    """What the tools returned, as the environment shows it."""
    return Message("user", _dialect.results([ToolResult("", ToolStatus.OK, text) for text in texts]))


def checked(messages: Sequence[Message]) -> list[Message]:
    """The messages, if they are a conversation that trains.

    Raises:
        UnusableError: The turns do not alternate from a user's to the policy's, or one is empty.
    """
    turns = list(messages[1:] if messages and messages[0].role == "system" else messages)
    if [message.role for message in turns] != ["user", "assistant"] * (len(turns) // 2) or not turns:
        raise UnusableError("the turns of user and policy do not alternate")
    if any(not message.content.strip() for message in turns):
        raise UnusableError("a turn is empty")
    return [message for message in messages if message.role != "system" or message.content]


def turns_of(row: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """Who speaks and what is said, of each turn of a row with ``conversations``.

    Args:
        row: ``conversations`` is a list of mappings with ``from`` and ``value``.

    Raises:
        UnusableError: It is none, or a turn says nothing that can be used.
    """
    turns = row.get("conversations")
    if not isinstance(turns, (list, tuple)) or not all(isinstance(turn, Mapping) for turn in turns):
        raise UnusableError("the turns are no list of mappings")
    for turn in turns:
        yield turn.get("from"), plain(turn.get("value"))


def plain(text: Any) -> str:
    """A text of a data set.

    Raises:
        UnusableError: It is no text, or brings marks of a chat template or of this dialect.
    """
    if not isinstance(text, str):
        raise UnusableError("a text is missing")
    if any(mark in text for mark in MARKS):
        raise UnusableError("a text brings marks of a chat template, of calls or of reasoning")
    return text


def parse_json(text: str) -> Any:
    """Read JSON.

    Raises:
        UnusableError: It is none.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnusableError("a call or a schema is not valid JSON") from error


def named_call(found: Any) -> tuple[str, Mapping[str, Any]]:
    """Name and arguments of a call that was read as JSON; arguments may be a string of JSON again.

    Raises:
        UnusableError: It has no name, or its arguments are no object.
    """
    arguments = found.get("arguments") if isinstance(found, Mapping) else None
    if isinstance(arguments, str):
        arguments = parse_json(arguments or "{}")
    if not isinstance(found, Mapping) or not isinstance(found.get("name"), str) or not isinstance(arguments, Mapping):
        raise UnusableError("a call has no name, or no object of arguments")
    return found["name"], arguments
