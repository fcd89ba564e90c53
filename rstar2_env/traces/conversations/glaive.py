"""Glaive function calling v2 (glaiveai/glaive-function-calling-v2): whole conversations in one text.

Turns begin with ``USER:``, ``ASSISTANT:`` and ``FUNCTION RESPONSE:`` on a line of their own; a call is
``<functioncall> {"name": …, "arguments": '…'}``, whose arguments are JSON in single quotes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rstar2_env.core.episode import Message
from rstar2_env.traces.conversations.base import (
    UnusableError,
    calls_message,
    checked,
    named_call,
    parse_json,
    plain,
    results_message,
    system_message,
)

_TURN = re.compile(r"(?:^|\n)\s*(USER|ASSISTANT|FUNCTION RESPONSE):")
_END = "<|endoftext|>"
_CALL = "<functioncall>"
_QUOTED = re.compile(r"""\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*'(.*)'\s*\}""", re.DOTALL)


def glaive(row: Mapping[str, Any]) -> list[Message]:
    """Convert a row of Glaive's function calls to a conversation; any text after the policy's last turn is dropped.

    Args:
        row: Has the keys ``system`` and ``chat``, both texts.

    Raises:
        UnusableError: The row cannot be read.
    """
    system, chat = row.get("system"), row.get("chat")
    if not isinstance(system, str) or not isinstance(chat, str):
        raise UnusableError("the field system or chat is not a text")
    text, schemas = _split_system(plain(system).removeprefix("SYSTEM:").strip())
    messages = [system_message(text, schemas)]
    pieces = _TURN.split(chat)
    for who, written in zip(pieces[1::2], pieces[2::2], strict=True):
        said = plain(written.replace(_END, "")).strip()
        if who == "FUNCTION RESPONSE":
            messages.append(results_message(said))
        elif who == "USER":
            messages.append(Message("user", said))
        elif _CALL in said:
            before, _, call = said.partition(_CALL)
            messages.append(calls_message([_call(call.strip())], before))
        else:
            messages.append(Message("assistant", said))
    while messages and messages[-1].role == "user":
        messages.pop()
    return checked(messages)


def _call(text: str) -> tuple[str, Mapping[str, Any]]:
    quoted = _QUOTED.fullmatch(text)
    if quoted is None:
        return named_call(parse_json(text))
    return named_call({"name": parse_json(quoted[1]), "arguments": quoted[2].replace("\\'", "'")})


def _split_system(text: str) -> tuple[str, list[Any]]:
    """Split a system text into the instructions and the schemas that follow, a sequence of JSON objects."""
    at = text.find("{")
    if at < 0:
        return text, []
    schemas: list[Any] = []
    end = at
    while end < len(text):
        try:
            schema, end = json.JSONDecoder().raw_decode(text, end)
        except (ValueError, RecursionError) as error:
            raise UnusableError("a tool call or the schema of a tool is not valid JSON") from error
        schemas.append(schema)
        while end < len(text) and text[end] in " \n\t,":
            end += 1
    return text[:at].rstrip(" -\n"), schemas
