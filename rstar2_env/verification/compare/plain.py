r"""The exact fast path: integers, decimals, fractions and scientific notation, as pairs of integers.

Covered: what a regular expression can read unambiguously, with a leading sign, ``$…$`` around, thousands separators
(``1,000`` and ``1\,000``), ``a/b`` and ``\frac{a}{b}``, ``1.5e3``. Everything here takes microseconds and imports no
other part of the package. Not covered: whatever needs a parser (units, percent, ``1,5``, words, expressions), for which
:func:`read_plain` returns ``None``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

MAX_DIGITS = 400
"""Longest run of digits that is read as a number."""

MAX_EXPONENT = 400
"""Largest power of ten, either way, in scientific notation."""

_MINUS = str.maketrans({"−": "-", "–": "-", "﹣": "-", "－": "-", "＋": "+"})

_PLAIN = re.compile(
    r"""(?P<sign>[+-]?)\s*
    (?:
      (?P<whole>[1-9]\d{0,2}(?:(?:,|\{,\}|\\,|\\!,\\!)\d{3})+|\d+)?(?:\.(?P<part>\d*))?
      (?:[eE](?P<exp>[+-]?\d{1,4})|\s*(?:\\times|\\cdot|×|\*)\s*10\s*\^\s*(?:\{\s*(?P<pow>[+-]?\d{1,4})\s*\}|(?P<digit>\d)))?
      (?:\s*/\s*(?P<over>\d+))?
    | \\[dtc]?frac\s*\{\s*(?P<top>[+-]?\d+)\s*\}\s*\{\s*(?P<bottom>[+-]?\d+)\s*\}
    )\.?""",
    re.VERBOSE | re.ASCII,
)
_SEPARATORS = re.compile(r"[^0-9]")


@dataclass(frozen=True, slots=True)
class PlainNumber:
    """A number as it was written.

    Attributes:
        top: Numerator.
        bottom: Denominator, positive; not necessarily in lowest terms.
        decimals: Number of digits after the decimal point, or ``None`` if it was not written as a decimal.
        exponent: Power of ten in the scientific notation that it was written in.
    """

    top: int
    bottom: int = 1
    decimals: int | None = None
    exponent: int = 0

    @property
    def value(self) -> Fraction:
        """The exact value."""
        return Fraction(self.top, self.bottom)


def read_plain(text: str) -> PlainNumber | None:
    """Read a plain number, or return ``None`` when the text is anything else or too long to be one."""
    text = text.strip()
    if len(text) > MAX_DIGITS:
        return None
    if text[:1] == "$" and text[-1:] == "$" and len(text) > 2:
        text = text[1:-1].strip()
    if not text.isascii():
        text = text.translate(_MINUS)
    match = _PLAIN.fullmatch(text)
    if match is None:
        return None
    sign, whole, part, exp, power, digit, over, top, bottom = match.groups()
    if top is not None:
        return _ratio(int(sign + "1") * int(top), int(bottom))
    if whole is None and not part:
        return None
    if whole is not None and not whole.isdigit():
        whole = _SEPARATORS.sub("", whole)
    number = int((whole or "") + (part or ""))
    if sign == "-":
        number = -number
    shift = int(exp or power or digit or 0)
    if not -MAX_EXPONENT <= shift <= MAX_EXPONENT:
        return None
    decimals = len(part) if part else None
    if over is not None:
        if shift or decimals is not None:
            return None
        return _ratio(number, int(over))
    scale = (decimals or 0) - shift
    if scale > 0:
        return PlainNumber(number, 10**scale, decimals, shift)
    return PlainNumber(number * 10**-scale, 1, decimals, shift)


def _ratio(top: int, bottom: int) -> PlainNumber | None:
    if bottom == 0:
        return None
    return PlainNumber(top, bottom) if bottom > 0 else PlainNumber(-top, -bottom)


FLOAT_DIGITS = 12
"""An answer with at least this many significant digits is taken for a floating-point print of an exact value."""


def same_number(gold: PlainNumber, answer: PlainNumber, tolerance: Fraction | None = None) -> bool:
    """Whether the answer is the gold number.

    Equal values are equal. A gold decimal also accepts a number of which it is the rounding or the truncation; see
    :func:`rounds_to`.

    Args:
        gold: The gold number.
        answer: The number to grade.
        tolerance: Largest error relative to the gold number (absolute where that is zero); replaces the rounding rule.
    """
    if gold.top * answer.bottom == answer.top * gold.bottom:
        return True
    if tolerance is not None:
        return within(gold.value, answer.value, tolerance)
    if is_float_of(answer, gold.value):
        return True
    if gold.decimals is None:
        return False
    return rounds_to(gold, answer.value, answer.decimals)


def is_float_of(answer: PlainNumber, value: Fraction) -> bool:
    """Whether a long decimal is ``value`` as a program prints it: every digit is right, except the last one or two.

    A short decimal never equals a fraction that it only approximates; the sixteen digits that a program prints do.
    """
    if answer.decimals is None or len(str(abs(answer.top)).lstrip("0")) < FLOAT_DIGITS or value == 0:
        return False
    ulp = Fraction(10) ** (answer.exponent - answer.decimals)
    return abs(answer.value - value) <= max(4 * ulp, abs(value) / 10**15)


def within(gold: Fraction, answer: Fraction, tolerance: Fraction) -> bool:
    """Whether two values are within a tolerance.

    Args:
        gold: The gold value.
        answer: The value to grade.
        tolerance: Largest error relative to ``gold`` (absolute where ``gold`` is zero).
    """
    return abs(answer - gold) <= tolerance * (abs(gold) or 1)


def rounds_to(gold: PlainNumber, value: Fraction, decimals: int | None) -> bool:
    """Whether a gold decimal is the rounding (or, for an exact form, the truncation) of ``value``.

    A short gold such as ``0.5`` is most likely exact, so the gold must have two digits after the point, or three digits
    in all. An exact form whose value is itself a short decimal would have given that decimal as gold, so it is a
    different number. An answer written as a decimal must have more digits than the gold, which must have at least three
    significant ones.

    Args:
        gold: The gold number, written as a decimal.
        value: The exact value of the answer.
        decimals: Number of digits after the point if the answer was written as a decimal, else ``None``.
    """
    if gold.decimals is None or value == 0:
        return False
    if gold.decimals < 2 and abs(gold.top) < 100:
        return False
    ulp = Fraction(10) ** (gold.exponent - gold.decimals)
    gap = abs(value - gold.value)
    if decimals is not None:
        return decimals > gold.decimals and abs(gold.top) >= 100 and 2 * gap <= ulp
    if _terminates(value, 2 * gold.decimals + 2):
        return False
    truncated = gap < ulp and abs(value) > abs(gold.value)
    return 2 * gap <= ulp or truncated


def _terminates(value: Fraction, decimals: int) -> bool:
    return (Fraction(10) ** decimals * value).denominator == 1
