r"""Reads the answer of a puzzle out of what stands in the policy's box.

Covered: the wrappers that models put around a plain answer. Not covered: finding the box, which is the dialect's.
"""

from __future__ import annotations

import json
import re

LONGEST_ANSWER = 4000
"""Characters. No puzzle here has an answer a tenth as long, and a reader may then be simple."""

_WRAPPER = re.compile(r"\\(?:text|texttt|textbf|textsf|mathrm|mathtt|mathbf|mathsf|operatorname)\s*\{([^{}]*)\}")
_SPACES = re.compile(r"(?<!\\)\\[,;:!> ]|\\(?:quad|qquad)\b|~")
_QUOTES = ("``''", "“”", "‘’", '""', "''", "``")


def plain(answer: str) -> str:
    r"""The answer without what only sets it in type.

    ``\text{…}`` and its like give their content, LaTeX's spaces (``\,``, ``\;``, ``\quad``, ``~``) a space, ``\_``,
    ``\&``, ``\%`` and ``\#`` the character, and white space and dollar signs around it all are dropped.
    """
    text = _WRAPPER.sub(r"\1", answer)
    text = _SPACES.sub(" ", text)
    text = re.sub(r"\\([_&%#])", r"\1", text)
    return text.strip().strip("$").strip()


def unquoted(text: str) -> str:
    """The text without one pair of quotation marks around it."""
    for marks in _QUOTES:
        half = len(marks) // 2
        if len(text) >= len(marks) and text.startswith(marks[:half]) and text.endswith(marks[half:]):
            return text[half:-half]
    return text


def told_string(text: str) -> str | None:
    """The string in the JSON object ``{"output": "…"}``; ``None`` where the text is no such object.

    Args:
        text: What ``plain`` left of an answer.
    """
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return None
    output = told.get("output") if isinstance(told, dict) else None
    return output if isinstance(output, str) else None
