"""Conversations without tools: lists of messages (Tulu 3), and an input with an output (Llama-Nemotron)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rstar2_env.core.episode import Message
from rstar2_env.traces.conversations.base import UnusableError, checked, plain

_ROLES = {"system": "system", "user": "user", "assistant": "assistant"}


def messages(row: Mapping[str, Any]) -> list[Message]:
    """Convert a row with ``messages``, each with ``role`` and ``content``.

    Raises:
        UnusableError: The row cannot be read.
    """
    found = row.get("messages")
    if not isinstance(found, (list, tuple)):
        raise UnusableError("the field messages is not a list")
    return checked([_message(one) for one in found])


def input_output(row: Mapping[str, Any]) -> list[Message]:
    """Convert a row with ``input`` (messages or a text), ``output`` (a text) and optionally ``system_prompt``.

    Raises:
        UnusableError: The row cannot be read, or its ``reasoning`` is ``on``, so that the output contains reasoning.
    """
    if row.get("reasoning") == "on":
        raise UnusableError("the output contains reasoning")
    asked = row.get("input")
    if isinstance(asked, str):
        before = [Message("user", plain(asked).strip())]
    elif isinstance(asked, (list, tuple)):
        before = [_message(one) for one in asked]
    else:
        raise UnusableError("the field input is neither a text nor a list of messages")
    if isinstance(row.get("system_prompt"), str) and row["system_prompt"].strip():
        before.insert(0, Message("system", plain(row["system_prompt"]).strip()))
    return checked([*before, Message("assistant", plain(row.get("output")).strip())])


def _message(found: Any) -> Message:
    role = _ROLES.get(str(found.get("role"))) if isinstance(found, Mapping) else None
    if role is None:
        raise UnusableError("a message has none of the roles system, user and assistant")
    return Message(role, plain(found.get("content")).strip())
