r"""Compares plain numbers (integers, decimals, fractions and scientific notation) as exact pairs of integers.

Covered: numbers that a regular expression can read unambiguously, with a leading sign, ``$…$`` around, thousands
separators (``1,000`` and ``1\,000``), ``a/b`` and ``\frac{a}{b}`` without leading zeros, ``1.5e3``. Everything here
takes microseconds and imports no other part of the package. Not covered: texts that need a parser (units, percent,
``1,5``, words, expressions), for which :func:`read_plain` returns ``None``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

MAX_DIGITS = 400
"""Length of the longest run of digits that is read as a number."""

MAX_EXPONENT = 400
"""Largest absolute value of the power of ten in scientific notation."""

_MINUS = str.maketrans({"−": "-", "–": "-", "﹣": "-", "－": "-", "＋": "+"})

_PLAIN = re.compile(
    r"""(?P<sign>[+-]?)\s*
    (?:
      (?!0\d+\s*/)(?P<whole>[1-9]\d{0,2}(?:(?:,|\{,\}|\\,|\\!,\\!)\d{3})+|\d+)?(?:\.(?P<part>\d*))?
      (?:[eE](?P<exp>[+-]?\d{1,4})|\s*(?:\\times|\\cdot|×|\*)\s*10\s*\^\s*(?:\{\s*(?P<pow>[+-]?\d{1,4})\s*\}|(?P<digit>\d)))?
      (?:\s*/\s*(?P<over>0|[1-9]\d*))?
    | \\[dtc]?frac\s*\{\s*(?P<top>[+-]?(?:0|[1-9]\d*))\s*\}\s*\{\s*(?P<bottom>[+-]?(?:0|[1-9]\d*))\s*\}
    )\.?""",
    re.VERBOSE | re.ASCII,
)
"""Pattern of a plain number. A term of a fraction has no leading zero: "03/04" is a date."""
_SEPARATORS = re.compile(r"[^0-9]")


@dataclass(frozen=True, slots=True)
class PlainNumber:
    """A number, with the form in which it was written.

    Attributes:
        top: Numerator.
        bottom: Denominator, positive; not necessarily in lowest terms.
        decimals: Number of digits after the decimal point, or ``None`` if it was not written as a decimal.
        exponent: Power of ten, if it was written in scientific notation; else 0.
        digits: Number of significant digits as written.
        form: How it was written: "integer", "decimal", "fraction" or "power" (scientific notation).
    """

    top: int
    bottom: int = 1
    decimals: int | None = None
    exponent: int = 0
    digits: int = 0
    form: str = "integer"

    @property
    def value(self) -> Fraction:
        """The exact value of the number."""
        return Fraction(self.top, self.bottom)

    @property
    def is_reduced(self) -> bool:
        """Whether the number is in lowest terms, or is not written as a fraction."""
        return self.form != "fraction" or gcd(self.top, self.bottom) == 1


def read_plain(text: str) -> PlainNumber | None:
    """Read a plain number; return ``None`` if the text is something else or too long."""
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
    number = int(sign + _SEPARATORS.sub("", (whole or "") + (part or "")))
    shift = int(exp or power or digit or 0)
    if not -MAX_EXPONENT <= shift <= MAX_EXPONENT:
        return None
    decimals = len(part) if part else None
    if over is not None:
        if shift or decimals is not None:
            return None
        return _ratio(number, int(over))
    form = "power" if exp or power or digit else "integer" if decimals is None else "decimal"
    return scaled(number, decimals, shift, form)


def scaled(number: int, decimals: int | None, exponent: int, form: str) -> PlainNumber:
    """Return a number from its digits, the position of its decimal point and its power of ten.

    Args:
        number: The digits as one integer.
        decimals: Number of digits after the point; ``None`` without a point.
        exponent: The power of ten.
        form: See ``PlainNumber.form``.
    """
    scale, digits = (decimals or 0) - exponent, len(str(abs(number)))
    top, bottom = (number, 10**scale) if scale > 0 else (number * 10**-scale, 1)
    return PlainNumber(top, bottom, decimals, exponent, digits, form)


def _ratio(top: int, bottom: int) -> PlainNumber | None:
    return PlainNumber(top if bottom > 0 else -top, abs(bottom), form="fraction") if bottom else None


FLOAT_DIGITS = 12
"""Number of significant digits from which an answer counts as a floating-point number that a program printed."""


def same_number(gold: PlainNumber, answer: PlainNumber, tolerance: Fraction | None = None) -> bool:
    """Return whether the answer equals the gold number.

    A gold decimal also equals an answer that rounds or truncates to the gold decimal; see :func:`rounds_to`.

    Args:
        gold: The gold number.
        answer: The number to grade.
        tolerance: Largest error relative to the gold number (absolute if the gold number is zero); replaces the
            rounding rule.
    """
    same = gold.top * answer.bottom == answer.top * gold.bottom
    return same or is_close(gold, answer, gold.value, answer.value, tolerance)


def is_close(
    gold: PlainNumber | None, answer: PlainNumber | None, value: Fraction, other: Fraction, tolerance: Fraction | None
) -> bool:
    """Return whether unequal numbers are close enough to count as equal.

    With a tolerance, their difference must be within it. Without one, the answer must be the printed float of the gold
    value (``is_float_of``), or the gold number must be the answer's rounding (``rounds_to``).

    Args:
        gold: The gold number as written; ``None`` if it is not written as a number.
        answer: The number to grade as written; ``None`` if it is not written as a number.
        value: The value of the gold answer.
        other: The value of the answer.
        tolerance: See :func:`same_number`.
    """
    if tolerance is not None:
        return abs(other - value) <= tolerance * (abs(value) or 1)
    if answer is not None and is_float_of(answer, value):
        return True
    stated = (answer.decimals, answer.exponent) if answer is not None else (None, 0)
    return gold is not None and rounds_to(gold, other, *stated)


def is_float_of(answer: PlainNumber, value: Fraction) -> bool:
    """Return whether a long decimal is a printed floating-point ``value``: only the last one or two digits may differ.

    A short decimal never equals a fraction that it only approximates; a decimal with the sixteen digits of a floating-
    point number does.
    """
    if answer.decimals is None or answer.digits < FLOAT_DIGITS or value == 0:
        return False
    ulp = Fraction(10) ** (answer.exponent - answer.decimals)
    return abs(answer.value - value) <= max(4 * ulp, abs(value) / 10**15)


SURE_DIGITS = 3
"""Number of significant digits from which a gold decimal may be a rounded value; with fewer digits it counts as exact.
"""


def rounds_to(gold: PlainNumber, value: Fraction, decimals: int | None, exponent: int = 0) -> bool:
    """Return whether a gold decimal is the rounding (or, for an exact answer, the truncation) of ``value``.

    A short gold decimal such as ``0.5`` or ``0.25`` is most likely exact, so the gold decimal must have three
    significant digits, or four if it is a truncation. Two digits suffice if the answer is a fraction whose denominator
    has one digit (``0.33`` can only mean 1/3). If the exact value is itself a short decimal, the gold answer would have
    been that decimal, so gold and answer count as different. An answer that is written as a decimal must have more
    digits than the gold decimal.

    Args:
        gold: The gold number, written as a decimal.
        value: The exact value of the answer.
        decimals: Number of digits after the point if the answer was written as a decimal, else ``None``.
        exponent: Power of ten of the answer's scientific notation.
    """
    sure_digits = SURE_DIGITS - (value.denominator < 10 and decimals is None)
    if gold.decimals is None or value == 0 or gold.digits < sure_digits:
        return False
    ulp = Fraction(10) ** (gold.exponent - gold.decimals)
    gap = abs(value - gold.value)
    if decimals is not None:
        return decimals - exponent > gold.decimals - gold.exponent and 2 * gap <= ulp
    places = max(2 * gold.decimals - gold.exponent, 0) + 2
    if (Fraction(10) ** places * value).denominator == 1:
        return False  # a short decimal itself
    truncated = gold.digits > SURE_DIGITS and gap < ulp and abs(value) > abs(gold.value)
    return 2 * gap <= ulp or truncated
