"""Text of models and files made harmless for a terminal: it is shown, and does nothing.

Every control character but the line feed and the tab becomes a visible sign (escape sequences can retitle a terminal,
write its clipboard, or erase what was shown), and so do the marks that reverse the order of letters.
"""

from __future__ import annotations

import re

from rich.text import Text

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]")
_PICTURES = 0x2400
_DELETE = 0x7F


def harmless(text: object) -> str:
    """Text that moves, colours and hides nothing: controls are signs such as ``␛``, others their code."""
    clean = str(text).replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
    return _CONTROLS.sub(_sign, clean)


def one_line(text: object, longest: int = 200) -> str:
    """The same on one line, cut."""
    line = " ".join(harmless(text).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def shown(text: object, style: str = "") -> Text:
    """The same for rich, which reads no markup in it."""
    return Text(harmless(text), style=style)


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(_PICTURES + code)
    return "␡" if code == _DELETE else f"\\u{code:04x}"
