"""Sanitizing of text from models and files for a terminal.

Every control character except line feed and tab becomes a visible symbol (escape sequences can retitle a terminal,
write its clipboard or erase output), and so do the marks that change the direction of text.
"""

from __future__ import annotations

import re

from rich.text import Text

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]")
_PICTURES = 0x2400
_DELETE = 0x7F


def sanitize(text: object) -> str:
    """Replace control characters by symbols such as ``␛``, and directional marks by their codes."""
    clean = str(text).replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
    return _CONTROLS.sub(_sign, clean)


def one_line(text: object, longest: int = 200) -> str:
    """Sanitize a text, join it to one line, and cut it to a length."""
    line = " ".join(sanitize(text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def safe_text(text: object, style: str = "") -> Text:
    """Sanitize a text for rich, without interpreting markup."""
    return Text(sanitize(text), style=style)


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(_PICTURES + code)
    return "␡" if code == _DELETE else f"\\u{code:04x}"
