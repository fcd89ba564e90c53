"""ToolACE (Team-ACE/ToolACE): calls as ``[Name(argument="value"), …]``, schemas as JSON in the system message."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from typing import Any

from rstar2_env.core.episode import Message
from rstar2_env.traces.conversations.base import (
    UnusableError,
    calls_message,
    checked,
    plain,
    results_message,
    system_message,
    turns_of,
)

_OPENED, _CLOSED = "([{", ")]}"
_WORDS = {"true": True, "false": False, "null": None}
_LONGEST = 20_000


def toolace(row: Mapping[str, Any]) -> list[Message]:
    """Convert a row of ToolACE to a conversation.

    Args:
        row: Has the keys ``system`` and ``conversations``, a list of turns with ``from`` (``user``, ``assistant``,
            ``tool``) and ``value``.

    Raises:
        UnusableError: The row cannot be read.
    """
    text, schemas = _split_system(plain(row.get("system")))
    messages = [system_message(text, schemas)]
    for who, said in turns_of(row):
        if who == "assistant":
            calls = read_calls(said)
            messages.append(calls_message(calls) if calls else Message("assistant", said.strip()))
        elif who == "tool":
            messages.append(results_message(said.strip()))
        else:
            messages.append(Message("user", said.strip()))
    return checked(messages)


def _split_system(text: str) -> tuple[str, list[Any]]:
    """Return the instructions and the schemas in a system text; the description of the call format is dropped."""
    at = text.find("[{")
    if at < 0:
        return text, []
    try:
        schemas, _ = json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        raise UnusableError("a tool call or the schema of a tool is not valid JSON") from error
    # The sentence before the list announces it; the text after it describes another call format.
    first = text[:at].rstrip().rpartition(".")[0]
    return (f"{first}." if first else "You may call functions."), list(schemas)


def read_calls(said: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return every call of a turn; empty if the turn is not a list of calls.

    Args:
        said: The turn.

    Raises:
        UnusableError: The turn begins like a list of calls but is malformed.
    """
    text = said.strip()
    if not (text.startswith("[") and text.endswith("]") and "(" in text):
        return []
    if len(text) > _LONGEST:
        raise UnusableError("a list of tool calls is too long to be parsed")
    return [_call(part) for part in _parts(text[1:-1])]


def _parts(text: str) -> Iterator[str]:
    """Split a list of calls at the commas between them."""
    depth, start, quote, escaped = 0, 0, "", False
    for at, sign in enumerate(text):
        if quote:
            if escaped:
                escaped = False
            elif sign == "\\":
                escaped = True
            elif sign == quote:
                quote = ""
        elif sign in "\"'" and depth:
            quote = sign
        elif sign in _OPENED:
            depth += 1
        elif sign in _CLOSED:
            depth -= 1
        elif sign == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    if quote or depth:
        raise UnusableError("a list of tool calls lacks a closing bracket or quotation mark")
    yield text[start:]


def _call(text: str) -> tuple[str, Mapping[str, Any]]:
    name, opened, arguments = text.strip().partition("(")
    if not name.strip() or not opened or not arguments.endswith(")"):
        raise UnusableError("a tool call does not have a name and arguments in parentheses")
    try:
        read = ast.parse(f"f({arguments[:-1]}\n)", mode="eval").body
        if not isinstance(read, ast.Call) or read.args or any(one.arg is None for one in read.keywords):
            raise ValueError
        return name.strip(), {str(one.arg): _value(one.value) for one in read.keywords}
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError) as error:
        raise UnusableError("the arguments of a tool call cannot be parsed") from error


def _value(node: ast.expr) -> Any:
    """Parse a value without evaluating it; ``true``, ``false`` and ``null`` are read as in JSON."""
    if isinstance(node, ast.Name) and node.id in _WORDS:
        return _WORDS[node.id]
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_value(one) for one in node.elts]
    if isinstance(node, ast.Dict):
        return {str(_value(key)): _value(value) for key, value in zip(node.keys, node.values, strict=True) if key}
    return ast.literal_eval(node)
