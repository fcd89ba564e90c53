"""Reads the chat messages and the JSON values that other frameworks exchange with an environment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any


def text_of(content: Any) -> str:
    """Return the text of a message's ``content``, which is a string, a list of parts, or ``None`` (no text, "")."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))


def user_and_system(messages: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
    """Join all messages that are not system messages, and all system messages; return the two texts in this order."""
    texts: dict[bool, list[str]] = {False: [], True: []}
    for message in messages:
        texts[message["role"] in ("system", "developer")].append(text_of(message.get("content")))
    return "\n\n".join(texts[False]), "\n\n".join(texts[True])


def as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON-serializable copy of a mapping; values that JSON cannot hold become text."""
    copied: dict[str, Any] = json.loads(json.dumps(dict(values), default=str))
    return copied
