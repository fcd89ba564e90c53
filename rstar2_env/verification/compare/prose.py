r"""Sentences with formulas in them, compared word by word and formula by formula.

"min at $x = 1$, max at $x = 0$" equals "min at $x=1$, max at $x=0$"; a different word or a different value is a
different answer. Not covered: paraphrase.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from rstar2_env.verification.read.clean import clean
from rstar2_env.verification.read.words import plain_words

_TEXT = re.compile(r"\\(?:text|textrm|mbox|mathrm|textbf|textit)\s*\{([^{}]*)\}")
_DOLLARS = re.compile(r"(?<!\\)\$([^$]*)\$")
_PLAIN_WORD = re.compile(r"(?<![\\a-zA-Z])[^\W\d_]{2,}(?![a-zA-Z])")
_FORMULA_EDGES = " .,;:!?\"'"


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of words, or a formula."""

    text: str
    formula: bool


def segments(text: str) -> list[Segment]:
    """Split a text into runs of words and formulas."""
    if _DOLLARS.search(text):
        parts: list[tuple[str, bool]] = []
        at = 0
        for match in _DOLLARS.finditer(text):
            parts.append((text[at : match.start()], False))
            parts.append((match[1], True))
            at = match.end()
        parts.append((text[at:], False))
    else:
        parts = _by_words(clean(text))
    return _joined(parts)


def _by_words(text: str) -> list[tuple[str, bool]]:
    r"""Split at ``\text{}`` and at plain words."""
    parts: list[tuple[str, bool]] = []
    at = 0
    pattern = _TEXT if _TEXT.search(text) else _PLAIN_WORD
    for match in pattern.finditer(text):
        parts.append((text[at : match.start()], True))
        parts.append((match[1] if pattern is _TEXT else match[0], False))
        at = match.end()
    parts.append((text[at:], True))
    return parts


def _joined(parts: list[tuple[str, bool]]) -> list[Segment]:
    result: list[Segment] = []
    for text, formula in parts:
        content = text.strip(_FORMULA_EDGES) if formula else plain_words(text)
        if not content:
            continue
        if result and not formula and not result[-1].formula:
            result[-1] = Segment(f"{result[-1].text} {content}", False)
        else:
            result.append(Segment(content, formula))
    return result


def same_prose(gold: str, answer: str, same_formula: Callable[[str, str], bool]) -> bool:
    """Whether two sentences have the same words and the same formulas, in the same order.

    Args:
        gold: The gold sentence.
        answer: The sentence to grade.
        same_formula: Says whether a formula of the gold and one of the answer are the same.
    """
    one, other = segments(gold), segments(answer)
    if len(one) != len(other) or not any(not segment.formula for segment in one):
        return False
    for left, right in zip(one, other, strict=True):
        if left.formula != right.formula:
            return False
        if left.formula:
            if left.text != right.text and not same_formula(left.text, right.text):
                return False
        elif left.text != right.text:
            return False
    return True
