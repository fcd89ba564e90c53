"""Quantities and words: when two values with units, percentages, money or names of things are the same.

The rules: a missing unit is accepted, a different one is not; ``%`` does not count as a unit.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from rstar2_env.verification.compare.equality import Rules, same_expression
from rstar2_env.verification.read import units, words
from rstar2_env.verification.read.nodes import Apply, Node, Num, Quantity, Sym, Words, key

_HALF_DAYS = frozenset({"am", "pm"})

Same = Callable[[Node, Node], bool | None]


def same_quantity(gold: Node, answer: Node, rules: Rules, same: Same) -> bool | None:
    """Compare two values of which at least one has a unit.

    Args:
        gold: The gold value.
        answer: The value to grade.
        rules: The rules of the comparison.
        same: Compares the values without their units.

    Returns:
        ``None`` when evaluation cannot decide.
    """
    value, unit = (gold.value, gold.unit) if isinstance(gold, Quantity) else (gold, None)
    other, other_unit = (answer.value, answer.unit) if isinstance(answer, Quantity) else (answer, None)
    if _HALF_DAYS & {(unit or "").lower(), (other_unit or "").lower()}:
        return key(value) == key(other) and (not unit or not other_unit or unit.lower() == other_unit.lower())
    if "%" in (unit, other_unit):
        return _same_percent(value, unit, other, other_unit, same)
    if unit is None or other_unit is None:
        if other_unit is not None and units.read_unit(other_unit) is None and not units.is_remark(other_unit):
            return False
        return same(value, other)
    one, two = units.read_unit(unit), units.read_unit(other_unit)
    if one is not None and two is not None:
        if units.ANY_UNIT in (one.dimension, two.dimension) or one == two:
            return same(value, other)
        if one.dimension != two.dimension:
            return False
        return same(value, Apply("mul", (other, Num(two.factor / one.factor))))
    if units.same_words(unit, other_unit):
        return same(value, other)
    return False if rules.strict else same(value, other)


def _same_percent(value: Node, unit: str | None, other: Node, other_unit: str | None, same: Same) -> bool | None:
    """25 % is not 25. It equals 0.25 if the gold is a percentage, or a decimal with exactly that value."""
    if unit == other_unit:
        return same(value, other)
    if unit == "%" and other_unit is None:
        return same(value, Apply("mul", (Num(Fraction(100)), other)))
    if unit is None and isinstance(value, Num) and value.decimals is not None:
        return same_expression(Num(value.value), Apply("div", (other, Num(Fraction(100)))), Rules())
    return False


def same_in_base(gold: Node, answer: Node) -> bool | None:
    """Compare numerals with a base, ``204_5``; ``None`` if neither side is one.

    A missing base is accepted, as a missing unit is. A value in another base is a different numeral, and a base that
    the gold does not have is work left undone.
    """
    match gold, answer:
        case Apply(op="base"), Apply(op="base"):
            return gold == answer
        case Apply(op="base", args=(digits, _)), Num():
            return digits == answer
        case (Apply(op="base"), _) | (_, Apply(op="base")):
            return False
        case _:
            return None


def same_ratio(gold: Node, answer: Node, same: Same) -> bool | None:
    """Compare ratios of three or more terms, ``1:2:3``; ``None`` if the two sides are not such ratios.

    Args:
        gold: The gold value.
        answer: The value to grade.
        same: Compares two values.
    """
    match gold, answer:
        case Apply(op="ratio", args=one), Apply(op="ratio", args=other) if len(one) == len(other) > 2:
            results = [
                same(Apply("mul", (left, other[0])), Apply("mul", (right, one[0])))
                for left, right in zip(one[1:], other[1:], strict=True)
            ]
            return False if False in results else None not in results
        case _:
            return None


def same_words(gold: Node, answer: Node, rules: Rules) -> bool:
    """Compare two answers of which at least one is words; a one-letter word may equal the variable of that name.

    Args:
        gold: The gold answer.
        answer: The answer to grade.
        rules: The rules of the comparison.
    """
    if isinstance(gold, Words) and isinstance(answer, Words):
        if words.same_text(gold.text, answer.text):
            return True
        return not rules.strict and words.is_contained(gold.text, answer.text)
    one, other = _name(gold), _name(answer)
    return one is not None and other is not None and words.same_text(one, other)


def _name(node: Node) -> str | None:
    if isinstance(node, Words):
        return node.text
    return node.name if isinstance(node, Sym) else None
