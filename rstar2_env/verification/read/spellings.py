r"""Rewrites unusual notations, by a table of patterns (``spellings.txt``).

Covered: notations that one regular expression recognizes, such as ``{a \over b}``, "1101 in binary" and "between 2 and
3". Not covered: single characters and commands (see ``clean``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

TABLE_FILE = Path(__file__).with_name("spellings.txt")

_Rewriting = tuple[tuple[str, ...], re.Pattern[str], str]


def without_layout(text: str) -> str:
    """Return a text without Markdown, HTML, sizes and spacing, by the first part of ``spellings.txt``."""
    return _rewritten(text, _table()[0])


def rewritten(text: str) -> str:
    """Replace each pattern of the second part of ``spellings.txt`` in a text, in the order of that file."""
    return _rewritten(text, _table()[1])


def _rewritten(text: str, rows: Sequence[_Rewriting]) -> str:
    for triggers, pattern, new in rows:
        for trigger in triggers:  # `any` over a generator takes three times as long
            if trigger in text:
                text = pattern.sub(new, text)
                break
    return text


@cache
def _table() -> tuple[list[_Rewriting], list[_Rewriting]]:
    """Return the rows of both parts of ``spellings.txt``: texts of which one must occur, a pattern, its replacement."""
    named: dict[str, str] = {}
    parts: tuple[list[_Rewriting], list[_Rewriting]] = [], []
    rows = parts[0]
    for line in TABLE_FILE.read_text(encoding="utf-8").split("\n"):
        first, _, rest = line.partition("\t")
        pattern, _, new = rest.partition("\t")
        for name, part in named.items():
            pattern = pattern.replace(f"{{{name}}}", part)
        if line.startswith("@"):
            named[first[1:]] = pattern
        elif rest:
            rows.append((tuple(first.split("|")), re.compile(pattern), new.replace("\\x20", " ")))
        elif line == "---":
            rows = parts[1]
    return parts
