r"""Reads the answer to a puzzle from the content of the policy's ``\boxed{}``.

Covered: the mark-up that models put around a plain answer. Not covered: finding the ``\boxed{}`` (the dialect does).
"""

from __future__ import annotations

import json
import re

LONGEST_ANSWER = 4000
"""Longest answer that is read, in characters: over ten times as long as any right answer to a bundled puzzle."""

_WRAPPER = re.compile(r"\\(?:text|texttt|textbf|textsf|mathrm|mathtt|mathbf|mathsf|operatorname)\s*\{([^{}]*)\}")
_SPACES = re.compile(r"(?<!\\)\\[,;:!> ]|\\(?:quad|qquad)\b|~")
_QUOTES = ("``''", "“”", "‘’", '""', "''", "``")


def plain(answer: str) -> str:
    r"""The answer without typesetting commands.

    ``\text{…}`` and similar commands are replaced by their content, LaTeX's spaces (``\,``, ``\;``, ``\quad``, ``~``)
    by a space, and ``\_``, ``\&``, ``\%`` and ``\#`` by the character after the backslash; surrounding white space and
    dollar signs are dropped.
    """
    text = _WRAPPER.sub(r"\1", answer)
    text = _SPACES.sub(" ", text)
    text = re.sub(r"\\([_&%#])", r"\1", text)
    return text.strip().strip("$").strip()


def unquoted(text: str) -> str:
    """The text without one enclosing pair of quotation marks."""
    for marks in _QUOTES:
        half = len(marks) // 2
        if len(text) >= len(marks) and text.startswith(marks[:half]) and text.endswith(marks[half:]):
            return text[half:-half]
    return text


def output_string(text: str) -> str | None:
    """The string in the JSON object ``{"output": "…"}``; ``None`` if the text is not such an object.

    Args:
        text: An answer as ``plain`` returns it.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    output = found.get("output") if isinstance(found, dict) else None
    return output if isinstance(output, str) else None
