r"""Compares sentences that contain formulas, word by word and formula by formula.

"min at $x = 1$, max at $x = 0$" equals "min at $x=1$, max at $x=0$"; sentences with a different word or a different
value are different. Not covered: paraphrase.
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
_FORMULA_EDGES = " .,;:!\"'"


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a sentence: consecutive words, or one formula."""

    text: str
    formula: bool


def segments(text: str) -> list[Segment]:
    r"""Split a sentence into runs of words and formulas."""
    if _DOLLARS.search(text):
        parts = _split(text, _DOLLARS, formula=True)
    else:
        text = clean(text)
        parts = _split(text, _TEXT if _TEXT.search(text) else _PLAIN_WORD, formula=False)
    result: list[Segment] = []
    for part, formula in parts:
        content = part.strip(_FORMULA_EDGES) if formula else plain_words(part)
        if not content:
            continue
        if result and not formula and not result[-1].formula:
            result[-1] = Segment(f"{result[-1].text} {content}", False)
        else:
            result.append(Segment(content, formula))
    return result


def _split(text: str, pattern: re.Pattern[str], *, formula: bool) -> list[tuple[str, bool]]:
    """Split a text into matches of a pattern and the parts between them.

    Args:
        text: The text.
        pattern: Matches formulas or words; its group, if it has one, is the content of a match.
        formula: Whether the matches are formulas and the other parts words, rather than the other way round.
    """
    parts: list[tuple[str, bool]] = []
    at = 0
    for match in pattern.finditer(text):
        parts += [(text[at : match.start()], not formula), (match[match.lastindex or 0], formula)]
        at = match.end()
    return [*parts, (text[at:], not formula)]


def same_prose(gold: str, answer: str, same_formula: Callable[[str, str], bool]) -> bool:
    """Return whether two sentences have the same words and the same formulas, in the same order.

    Args:
        gold: The gold sentence.
        answer: The sentence to grade.
        same_formula: Function that compares a formula of the gold sentence with one of the answer.
    """
    one, other = segments(gold), segments(answer)
    if len(one) != len(other) or not any(not segment.formula for segment in one):
        return False
    return all(
        left.formula == right.formula
        and (left.text == right.text or (left.formula and same_formula(left.text, right.text)))
        for left, right in zip(one, other, strict=True)
    )
