"""Compares two expressions by evaluating both at rational points, exactly or with ball (interval) arithmetic.

Two expressions differ if their values certainly differ at one point. They count as equal if their values agree at
several points, at two of them to about fifty digits. The points are drawn from a hash of the two texts, so no text can
be fitted to them. They cover every combination of signs (otherwise ``|x|`` could pass for ``x``), several magnitudes,
both sides of the constants where an absolute value or a similar function may have a kink, and narrow domains (the unit
interval, whole numbers). Two expressions are compared where both are defined over the reals (``ln x^2`` equals
``2 ln x``); if one of them contains ``i``, they are compared over the complex numbers. Not covered: structures (see
``answers``).
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from rstar2_env.verification.compare.plain import PlainNumber, is_close, scaled
from rstar2_env.verification.read.nodes import Apply, Const, Node, Num, key, replace_symbols, symbols, walk, whole
from rstar2_env.verification.values import ball
from rstar2_env.verification.values.evaluate import Evaluator, Notation, position

Same = Callable[[Node, Node], bool | None]
"""Function that returns whether two expressions are equal; ``None`` if it cannot decide."""


def all_of(results: Iterable[bool | None]) -> bool | None:
    """Return ``False`` if any result is ``False``, else ``None`` if any is ``None``, else ``True``."""
    unknown = False
    for result in results:
        if result is False:
            return False
        unknown = unknown or result is None
    return None if unknown else True


def any_of(results: Iterable[bool | None]) -> bool | None:
    """Return ``True`` if any result is ``True``, else ``None`` if any is ``None``, else ``False``."""
    none = all_of(None if result is None else not result for result in results)
    return None if none is None else not none


LOW_BITS = 64
HIGH_BITS = 320
HUGE_BITS = 6_000
"""Precision, in bits, for constants so large that a difference of one would not show at a lower precision."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules by which two answers are compared.

    Attributes:
        tolerance: Relative tolerance between numbers, or ``None`` for exact comparison.
        strict: Whether to apply the strict rules of docs/verification-rules.md, or the lenient ones.
        undone: How much work an answer may leave uncomputed: "none", "arithmetic" or "any".
        percent: Whether the question asks for a percentage, so that the gold answer 20 also equals 20 %.
        known: Words that may stand next to a number; see ``vocabulary.known_words``.
        question: The question, whose conditions an answer may repeat; see ``conditions.stated``.
    """

    tolerance: Fraction | None = None
    strict: bool = True
    undone: str = "none"
    percent: bool = False
    known: frozenset[str] = frozenset()
    question: str | None = None


def same_expression(gold: Node, answer: Node, rules: Rules) -> bool | None:
    """Return whether two expressions are equal.

    Args:
        gold: The gold expression.
        answer: The expression to grade.
        rules: The rules of the comparison.

    Returns:
        ``None`` when evaluation cannot decide.

    Raises:
        TooLargeError: A value is too large to compute with.
    """
    if key(gold) == key(answer):
        return True
    names = sorted(symbols(gold) | symbols(answer))
    return any_of(
        _same_function(gold, answer, names, notation) if names else _same_constant(gold, answer, rules, notation)
        for notation in _notations(gold, answer)
    )


def _notations(gold: Node, answer: Node) -> list[Notation]:
    """Return the notations to try: gold or answer may lack a degree mark; "log" may mean the decimal logarithm."""
    marks, other = _marks(gold), _marks(answer)
    over_complex = "i" in marks or "i" in other
    notations = [Notation(over_complex)]
    if ("deg" in marks) != ("deg" in other) and not {"rad", "pi"} & (other if "deg" in marks else marks):
        notations.append(Notation(over_complex, degrees=False))
    if "log" in marks or "log" in other:
        notations.append(Notation(over_complex, decimal_log=True))
    return notations


def _marks(node: Node) -> set[str]:
    """Return the names of the constants and operations of an expression; ``log`` with a base is omitted."""
    found: set[str] = set()
    for part in walk(node):
        if isinstance(part, Const):
            found.add(part.name)
        elif isinstance(part, Apply) and (part.op != "log" or len(part.args) == 1):
            found.add(part.op)
    return found


def _same_constant(gold: Node, answer: Node, rules: Rules, notation: Notation) -> bool | None:
    result: bool | None = False
    for over_complex in (False, True) if not notation.over_complex else (True,):
        kind = replace(notation, over_complex=over_complex)
        try:
            result = _same_at(gold, answer, {}, kind, (LOW_BITS, HIGH_BITS, HUGE_BITS))
            break
        except ball.UnsupportedError:
            return None
        except ball.UndefinedError:
            continue
    return _close_constant(gold, answer, rules, notation) if result is False else result


def _close_constant(gold: Node, answer: Node, rules: Rules, notation: Notation) -> bool:
    """Return whether unequal constants are close enough to count as equal under the rules."""
    written, answer_written = decimal_of(gold), decimal_of(answer)
    if rules.tolerance is None and written is None and answer_written is None:
        return False
    real = replace(notation, over_complex=False)
    try:
        values = [Evaluator({}, HIGH_BITS, real).value(node) for node in (gold, answer)]
    except ball.NoValueError:
        return False
    exact = [ball.middle(value) for value in values if not isinstance(value, ball.Complex)]
    return len(exact) == 2 and is_close(written, answer_written, exact[0], exact[1], rules.tolerance)


def place(node: Node) -> float:
    """Return an approximate value of an expression at a fixed point, for sorting; 0 if it has no value."""
    return position(node, {name: Fraction(at, 7) for at, name in enumerate(sorted(symbols(node)), 9)}) or 0.0


def decimal_of(node: Node) -> PlainNumber | None:
    """Convert a decimal, with or without a sign or a power of ten, to a number; return ``None`` for other nodes."""
    match node:
        case Num(value=value, decimals=int(decimals)):
            return scaled((value * 10**decimals).numerator, decimals, 0, "decimal")
        case Apply(op="neg", args=(inner,)):
            number = decimal_of(inner)
            return None if number is None else replace(number, top=-number.top)
        case Apply(
            op="mul", args=(Num(value=value, decimals=decimals), Apply(op="pow", args=(Num(value=ten), exponent)))
        ):
            power = whole(exponent)
            if ten != 10 or power is None or abs(power) > 400:
                return None
            return scaled((value * 10 ** (decimals or 0)).numerator, decimals, power, "power")
        case _:
            return None


class _DifferentError(Exception):
    """Two expressions have different values at a point."""


def _same_function(gold: Node, answer: Node, names: list[str], notation: Notation) -> bool | None:
    chance = chance_of(gold, answer)
    wanted = max(4, 1 << min(len(names), 3))  # as many as combinations of the signs of up to three variables
    try:
        met = _agreement(gold, answer, signed_points(names, chance), notation, wanted)
        _agreement(gold, answer, kink_points(gold, answer, names, chance), notation, 99)
        for region in other_points(names, chance):
            if met >= wanted:
                break
            met += _agreement(gold, answer, region, notation, wanted)
        if met < 2:
            met += _agreement(gold, answer, whole_points(names, chance), notation, wanted)
    except ball.UnsupportedError:
        return None
    except _DifferentError:
        return False
    # No point refuted equality. If few points could be evaluated, two are enough evidence; one or none is not.
    return True if met >= 2 else None if met else False


def _agreement(gold: Node, answer: Node, points: Iterable[Point], notation: Notation, wanted: int) -> int:
    """Return the number of points at which the answers agree, at most ``wanted``.

    Raises:
        _DifferentError: The answers differ at one of the points.
    """
    agreed = 0
    for point in points:
        try:
            same = _same_at(gold, answer, point, notation, (LOW_BITS, HIGH_BITS), check=agreed < 2)
        except (ball.UndefinedError, ball.TooLargeError):
            continue
        if same is False:
            raise _DifferentError
        agreed += bool(same)
        if agreed >= wanted:
            break
    return agreed


def _same_at(
    gold: Node, answer: Node, point: Point, notation: Notation, precisions: tuple[int, ...], *, check: bool = True
) -> bool | None:
    """Return whether the values agree at one point; ``None`` if a value is too imprecise.

    With ``check``, inexact values count as equal only at a precision of ``HIGH_BITS`` or more.
    """
    for prec in _precisions(gold, answer) or precisions:
        try:
            left, right = (Evaluator(point, prec, notation).value(node) for node in (gold, answer))
        except ball.VagueError:
            continue
        order = _compare(left, right, prec)
        if order is False or (order is True and (prec >= HIGH_BITS or not check or _exact(left, right))):
            return order
    return None


def _exact(left: ball.Value, right: ball.Value) -> bool:
    return isinstance(left, Fraction) and isinstance(right, Fraction)


def _compare(left: ball.Value, right: ball.Value, prec: int) -> bool | None:
    """Return ``False`` if the values differ, ``True`` if they agree within their intervals, else ``None``."""
    if _exact(left, right):
        return left == right
    if isinstance(left, ball.Complex) or isinstance(right, ball.Complex):
        pairs = [(value.real, value.imag) for value in (ball.to_complex(left), ball.to_complex(right))]
        return all_of(_compare(one, other, prec) for one, other in zip(*pairs, strict=True))
    one, other = ball.to_ball(left), ball.to_ball(right)
    difference = one - other
    if not ball.contains_zero(difference):
        return False
    # The agreement must be small absolutely and relative to the values: next to e^5000, any number agrees with 12.
    width = ball.width_exponent(difference)
    scale = max(ball.size_exponent(one), ball.size_exponent(other), 0)
    return True if width - scale <= -(prec // 2) and width <= -(prec // 4) else None


@lru_cache(maxsize=4096)
def _precisions(gold: Node, answer: Node) -> tuple[int, ...]:
    """Return precisions, in bits, at which very small terms (``10^{-200}``) are visible; empty without such terms."""
    bits = 0
    for part in (*walk(gold), *walk(answer)):
        if isinstance(part, Apply) and part.op in ("pow", "exp") and not symbols(part):
            try:
                value = Evaluator({}, LOW_BITS).value(part.args[-1])
            except (ball.NoValueError, ball.TooLargeError):
                continue
            size = abs(value) if isinstance(value, Fraction) else 0
            if size > _LARGE:
                bits = max(bits, HUGE_BITS, min(int(8 * size), MOST_BITS))
    return (bits,) if bits else ()


_LARGE = 50
"""Largest constant exponent that does not raise the precision of the comparison."""

MOST_BITS = 40_000
"""Highest precision of a comparison, in bits."""


def proportional(gold: Node, answer: Node, rules: Rules, *, positive: bool) -> bool | None:
    """Return whether one expression is a constant, nonzero multiple of the other; ``None`` if that is unknown.

    Args:
        gold: An expression.
        answer: An expression.
        rules: The rules of the comparison.
        positive: Accept only a positive factor, as between the sides of an inequality.
    """
    names = sorted(symbols(gold) | symbols(answer))
    chance = chance_of(gold, answer)
    notation = Notation(any(part == Const("i") for part in (*walk(gold), *walk(answer))))
    for region in (signed_points(names, chance), *other_points(names, chance)):
        for point in region:
            try:
                signs = [_sign(Evaluator(point, LOW_BITS, notation).value(node)) for node in (gold, answer)]
            except ball.UnsupportedError:
                return None
            except (ball.UndefinedError, ball.VagueError, ball.TooLargeError):
                continue
            if None in signs or 0 in signs:
                continue
            if positive and signs[0] != signs[1]:
                return False
            values = {name: Num(value) for name, value in point.items()}
            one, other = replace_symbols(gold, values), replace_symbols(answer, values)
            return same_expression(Apply("mul", (gold, other)), Apply("mul", (answer, one)), rules)
    return None


def _sign(value: ball.Value) -> int | None:
    if isinstance(value, ball.Complex):
        return None if ball.contains_zero(value) else 1
    return ball.sign(value)


Point = dict[str, Fraction]

ATTEMPTS = 16
"""Number of points in each list that ``signed_points``, ``other_points`` or ``whole_points`` produces."""

_SCALES = tuple(map(Fraction, ("1", "1", "6", "6", "1/8", "1/8", "40", "40")))
_KINKED = frozenset({"cases", "abs", "max", "min", "floor", "ceil", "sgn", "root", "norm"})
_MAX_KINKS = 6
_STEPS = (Fraction(1, 7), Fraction(-1, 7))


def chance_of(gold: Node, answer: Node) -> random.Random:
    """Return a random generator that is seeded by both trees.

    So verdicts are reproducible, and an answer cannot be fitted to the points at which it is evaluated.
    """
    return random.Random(hashlib.sha256(f"{key(gold)}\0{key(answer)}".encode("utf-8", "surrogatepass")).digest())


def signed_points(names: Sequence[str], chance: random.Random) -> Iterator[Point]:
    """Yield points with every combination of signs and several magnitudes."""
    for attempt in range(ATTEMPTS):
        scale = _SCALES[attempt % len(_SCALES)]
        yield {
            name: scale * _small(chance) * (-1 if attempt >> (index % 4) & 1 else 1) for index, name in enumerate(names)
        }


def kink_points(gold: Node, answer: Node, names: Sequence[str], chance: random.Random) -> Iterator[Point]:
    """Yield points on both sides of places where an absolute value, a root or a similar function may have a kink.

    These places are plus and minus the constants in the two expressions.

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
        for direction in (1, -1):
            for step in steps:
                for name in names[:2]:
                    point = {other: _small(chance) for other in names}
                    yield {**point, name: direction * constant + step}


def other_points(names: Sequence[str], chance: random.Random) -> Iterator[Sequence[Point]]:
    """Yield one list of points with small values, one with values from 0 to 1, and one with large values.

    They are for expressions that have no value at most points of ``signed_points``.
    """
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
