"""Chooses the points at which two expressions are compared: rational numbers, drawn from a hash of both expressions.

Covered: every combination of signs (otherwise ``|x|`` could pass for ``x``), several magnitudes, both sides of the
constants where an absolute value or a similar function may have a kink, and domains that contain few of the points (the
unit interval, whole numbers).
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction

from rstar2_env.verification.read.nodes import Apply, Node, Num, key, walk

Point = dict[str, Fraction]

ATTEMPTS = 16
"""Number of points to try of each kind: signed, small, unit-interval, large and whole points."""

_SCALES = tuple(map(Fraction, ("1", "1", "6", "6", "1/8", "1/8", "40", "40")))
_KINKED = frozenset({"cases", "abs", "max", "min", "floor", "ceil", "sgn", "root", "norm"})
_MAX_KINKS = 6
_STEPS = (Fraction(1, 7), Fraction(-1, 7))


def chance_of(gold: Node, answer: Node) -> random.Random:
    """Return a random generator seeded by both trees, so that verdicts repeat and no answer can be fitted to it."""
    return random.Random(hashlib.sha256(f"{key(gold)}\0{key(answer)}".encode("utf-8", "surrogatepass")).digest())


def needed(names: Sequence[str]) -> int:
    """Return the number of points at which two expressions must agree.

    The number suffices for every combination of the signs of up to three variables.
    """
    return max(4, 1 << min(len(names), 3))


def signed_points(names: Sequence[str], chance: random.Random) -> Iterator[Point]:
    """Yield points with every combination of signs and several magnitudes."""
    for attempt in range(ATTEMPTS):
        scale = _SCALES[attempt % len(_SCALES)]
        yield {
            name: scale * _small(chance) * (-1 if attempt >> (index % 4) & 1 else 1) for index, name in enumerate(names)
        }


def kink_points(gold: Node, answer: Node, names: Sequence[str], chance: random.Random) -> Iterator[Point]:
    """Yield points on both sides of the constants in expressions with absolute values, roots and similar functions.

    Args:
        gold: The gold expression.
        answer: The expression to grade.
        names: Names of the variables.
        chance: The random generator.
    """
    parts = [*walk(gold), *walk(answer)]
    if not any(isinstance(part, Apply) and part.op in _KINKED for part in parts):
        return
    cases = any(isinstance(part, Apply) and part.op == "cases" for part in parts)
    least, steps = (0, (Fraction(0), *_STEPS)) if cases else (2, _STEPS)  # at an end, one of two cases holds
    constants = sorted({abs(part.value) for part in parts if isinstance(part, Num) and part.value > least})[:_MAX_KINKS]
    for constant in [*constants, *([Fraction(0)] if cases else [])]:
        for sign in (1, -1):
            for step in steps:
                for name in names[:2]:
                    point = {other: _small(chance) for other in names}
                    yield {**point, name: sign * constant + step}


def other_points(names: Sequence[str], chance: random.Random) -> Iterator[Sequence[Point]]:
    """Yield lists of points with small values, values from 0 to 1, and large values, if the domain may be narrow."""
    for draw in (_small, _unit, _large):
        yield [{name: draw(chance) for name in names} for _ in range(ATTEMPTS)]


def whole_points(names: Sequence[str], chance: random.Random) -> Sequence[Point]:
    """Return points with whole numbers, for sequences such as ``(-1)^n``, factorials and finite sums."""
    return [{name: Fraction(chance.randint(1, 12)) for name in names} for _ in range(ATTEMPTS)]


def _small(chance: random.Random) -> Fraction:
    return Fraction(chance.randint(5, 61), chance.choice((7, 11, 13, 17)))


def _unit(chance: random.Random) -> Fraction:
    return Fraction(chance.randint(2, 95), 97)


def _large(chance: random.Random) -> Fraction:
    return Fraction(chance.randint(60, 900), chance.choice((7, 11, 13)))
