"""Text helpers: make text safe for terminals, tokenizers and files, remove parts of a text, format tables."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

_ACTIVE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Characters that a terminal or an editor interprets: control characters (C0, C1), text direction marks, line
separators, invisible marks; and lone surrogates."""


def harmless(text: object) -> str:
    r"""Escape every character that a terminal would interpret (``\x1b``); keep line breaks and tabs.

    A program may print escape sequences, carriage returns or text direction marks. If printed unescaped, they could
    repaint the reader's terminal or make a line look like another line. Lone surrogates are escaped too, since they
    cannot be printed.

    Args:
        text: The text, or a value to convert to text.
    """
    lines = str(text).replace("\r\n", "\n")
    return _ACTIVE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), lines)


def encodable(text: str) -> str:
    """Replace each lone surrogate with ``?``, since neither tokenizers nor UTF-8 files accept lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def without_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text without some of its parts.

    Args:
        text: The text.
        spans: Start and end of each part to remove, in order and without overlaps.
    """
    kept, done = [], 0
    for start, end in spans:
        kept.append(text[done:start])
        done = end
    return "".join([*kept, text[done:]])


def text_table(title: str, rows: Sequence[Sequence[str]]) -> str:
    """Return a title line, and rows of cells in aligned columns; all rows must have the same number of cells."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join([title, *(f"  {line}" for line in lines)])


def html_table(title: str, rows: Sequence[Sequence[str]], *, headings: Sequence[str] = ()) -> str:
    """Return a table as HTML, for notebooks; all texts are escaped."""
    head = "".join(f"<th style='text-align:left'>{html.escape(cell)}</th>" for cell in headings)
    body = (
        "<tr>" + "".join(f"<td style='text-align:left'>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return (
        f"<table><caption style='text-align:left'>{html.escape(title)}</caption>"
        f"{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{''.join(body)}</tbody></table>"
    )
