"""``Secret``: a token or key that files, messages and terminals show as ``***``.

Covered: the type ``Secret``; options that hold a secret as text, recognized by their names (``redacted``), before
options are written; texts that quote a secret of this process (``hidden``), before they are written or printed. Not
covered: output of the user's own programs, and secrets that a launcher passes on a command line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

SHOWN = "***"
"""Text that replaces a secret in files and messages."""
NAMES = frozenset({"api_key", "password", "secret", "token"})
"""Names of options whose values are secrets."""

_SHORTEST = 6
_known: set[str] = set()
_named = "|".join(sorted(NAMES))
_IN_TEXT = re.compile(rf"""((?<![\w"'])(?:{_named})=|"(?:{_named})"\s*:\s*")([^,)\s"'\]}}]+)""")


class Secret:
    """A token or key whose text is hidden; its ``str`` and ``repr`` do not show it.

    Args:
        value: The text of the secret.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value
        if len(value) >= _SHORTEST:
            _known.add(value)

    def reveal(self) -> str:
        """Return the text of the secret; only the code that sends the secret may call this."""
        return self._value

    def __repr__(self) -> str:
        """Return ``***``."""
        return SHOWN

    def __eq__(self, other: object) -> bool:
        """Whether both secrets have the same text."""
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        """Return the hash of the text."""
        return hash((Secret, self._value))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the secret's text, which another process of the user needs."""
        return Secret, (self._value,)


def secret_of(value: str | Secret | None) -> Secret | None:
    """Convert the value of an option to a secret; ``None`` if the value is missing or is the placeholder ``***``."""
    if isinstance(value, Secret) or value is None:
        return value
    return None if value in ("", SHOWN) else Secret(value)


def bearer(value: str | Secret | None) -> dict[str, str]:
    """Return the HTTP header ``Authorization`` with the given token or key; an empty dict for ``None``."""
    secret = secret_of(value)
    return {} if secret is None else {"Authorization": f"Bearer {secret.reveal()}"}


def redacted(values: Any) -> Any:
    """Return a copy of options in which ``***`` replaces every secret.

    Args:
        values: JSON values; options may also be in the text of a part (``remote:url=...,token=...``).
    """
    if isinstance(values, Mapping):
        return {
            name: SHOWN if name in NAMES and isinstance(value, str) and value else redacted(value)
            for name, value in values.items()
        }
    if isinstance(values, (list, tuple)):
        return [redacted(value) for value in values]
    return hidden(_IN_TEXT.sub(rf"\1{SHOWN}", values)) if isinstance(values, str) else values


def hidden(text: str, but: Secret | None = None) -> str:
    """Return a text in which ``***`` replaces every secret of this process that has at least 6 characters.

    Args:
        text: Any text that will be written or printed.
        but: A secret that is not replaced, because the purpose of the text is to show it.
    """
    # A copy, since another thread may add one; the longest first, since a secret may contain another.
    for value in sorted(_known, key=len, reverse=True):
        if value in text and (but is None or value != but.reveal()):
            text = text.replace(value, SHOWN)
    return text


def hide_arguments() -> None:
    """Replace the secrets on the command line of this process with ``***``: trackers record the command line."""
    sys.argv[:] = redacted(sys.argv)
