"""Deliberately wrong answers: to test that a verifier rejects them, and for training traces with a mistake."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

import numpy as np


def changed_answer(answer: str) -> str:
    """An answer with another value: a plain number plus one; for anything else, ``(answer)+1`` as text."""
    try:
        value = Decimal(answer.strip())
    except InvalidOperation:
        return f"({answer})+1"
    return format(value + 1, "f") if value.is_finite() and abs(value.adjusted()) < 20 else f"({answer})+1"


def miscopied(answer: str, rng: np.random.Generator) -> str:
    """The answer with a copying error: a digit changed, left out or doubled, or two neighbouring digits swapped.

    The result is another number, without a leading zero. An answer that is not a plain whole number is changed by
    ``changed_answer``.

    Args:
        answer: The right answer.
        rng: Chooses the mistake.
    """
    sign, digits = ("-", answer[1:]) if answer.startswith("-") else ("", answer)
    if not (digits.isascii() and digits.isdecimal()):
        return changed_answer(answer)
    candidates = sorted(
        {wrong for wrong in _mistakes(digits) if int(wrong) != int(digits) and str(int(wrong)) == wrong}
    )
    return sign + candidates[int(rng.integers(len(candidates)))]


def _mistakes(digits: str) -> list[str]:
    mistakes: list[str] = []
    for at, digit in enumerate(digits):
        before, after = digits[:at], digits[at + 1 :]
        mistakes.extend(before + other + after for other in "0123456789" if other != digit)
        mistakes.append(before + digit + digit + after)
        if before or after:
            mistakes.append(before + after)
        if after:
            mistakes.append(before + after[0] + digit + after[1:])
    return mistakes
