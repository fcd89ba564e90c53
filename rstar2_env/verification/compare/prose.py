r"""Compares sentences that contain formulas, word by word and formula by formula.

"min at $x = 1$, max at $x = 0$" equals "min at $x=1$, max at $x=0$"; sentences with a different word or a different
value are different. Not covered: paraphrase.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rstar2_env.verification.read.clean import clean
from rstar2_env.verification.read.words import plain_words

_TEXT = re.compile(r"\\(?:text|textrm|mbox|mathrm|textbf|textit)\s*\{([^{}]*)\}")
_DOLLARS = re.compile(r"(?<!\\)\$([^$]*)\$")
_PLAIN_WORD = re.compile(r"(?<![\\a-zA-Z])[^\W\d_]{2,}(?![a-zA-Z])")
_FORMULA_EDGES = " .,;:!\"'"


def segments(text: str) -> list[tuple[str, bool]]:
    """Split a sentence into runs of words and formulas; return the text of each, and whether it is a formula."""
    if _DOLLARS.search(text):
        parts = _split(text, _DOLLARS, formula=True)
    else:
        text = clean(text)
        parts = _split(text, _TEXT if _TEXT.search(text) else _PLAIN_WORD, formula=False)
    result: list[tuple[str, bool]] = []
    for part, formula in parts:
        content = part.strip(_FORMULA_EDGES) if formula else plain_words(part)
        if not content:
            continue
        if result and not formula and not result[-1][1]:
            content = f"{result.pop()[0]} {content}"
        result.append((content, formula))
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
    if len(one) != len(other) or all(formula for _, formula in one):
        return False
    return all(
        left == right or (left[1] and right[1] and same_formula(left[0], right[0]))
        for left, right in zip(one, other, strict=True)
    )
