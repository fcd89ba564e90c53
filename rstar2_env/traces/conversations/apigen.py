"""APIGen-MT (Salesforce/APIGen-MT-5k): turns of a user and the policy, with calls, results, and schemas as JSON."""

from __future__ import annotations

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
    turns_of,
)


def apigen(row: Mapping[str, Any]) -> list[Message]:
    """Convert a row of APIGen-MT to a conversation; any text after the policy's last turn is dropped.

    Args:
        row: Has the keys ``system``, ``tools`` (JSON) and ``conversations`` (a list of turns with ``from`` and
            ``value``).

    Raises:
        UnusableError: The row cannot be read.
    """
    schemas = parse_json(plain(row.get("tools")))
    if not isinstance(schemas, list):
        raise UnusableError("a tool call or the schema of a tool is not valid JSON")
    messages = [system_message(plain(row.get("system")), schemas)]
    for who, said in turns_of(row):
        if who == "function_call":
            messages.append(calls_message([named_call(parse_json(said))]))
        elif who == "observation":
            messages.append(results_message(said.strip()))
        else:
            messages.append(Message("assistant" if who == "gpt" else "user", said.strip()))
    while messages and messages[-1].role == "user":
        messages.pop()
    return checked(messages)
