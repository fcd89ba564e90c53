"""Compares values with units, percentages, money or counted nouns ("3 apples"), and answers in words.

An answer without a unit is accepted, even if the gold answer has one. An answer in another unit is converted, or
refused if the two units measure different things. ``%`` does not count as a unit.
"""

from __future__ import annotations

import re
from fractions import Fraction

from rstar2_env.verification.compare.equality import Rules, Same, same_expression
from rstar2_env.verification.read import units, vocabulary, words
from rstar2_env.verification.read.nodes import Apply, Node, Num, Quantity, Sym, Words

ASKS_PERCENT = re.compile(
    r"\b(?:what|which|how (?:many|much)|find|calculate|as an?)\b[^.?!]{0,60}\bper\s?cent(?:age)?s?\b"
    r"|(?:percentage|(?<!\d )per\s?cent)s?\b[^.?!]*\?|what is the (?:%|\\%)|in percent\b|百分|パーセント"
    r"|porcentaje|por ciento|pourcentage|pour cent|prozent|процент|asilimia|శాతం|শতাংশ|เปอร์เซ็นต์",
    re.IGNORECASE,
)
"""Pattern of text in a question that asks for a percentage."""

ASKS_RESIDUE = re.compile(
    r"mod(?![a-z])|\bmodul(?:o|e|us)|remainder|residue|congruen|\\equiv|≡|остат|余数|餘數|余り|剰余|나머지",
    re.IGNORECASE,
)
"""Pattern of text in a question that asks for a residue."""


def same_quantity(gold: Node, answer: Node, rules: Rules, same: Same) -> bool | None:
    """Compare two values of which at least one has a unit.

    Args:
        gold: The gold value.
        answer: The value to grade.
        rules: The rules of the comparison.
        same: Function that compares the values without their units.

    Returns:
        Whether the values are equal; ``None`` when evaluation cannot decide.
    """
    value, unit = _parts(gold, answer)
    other, other_unit = _parts(answer, gold)
    asked = rules.known | vocabulary.of_percent(rules.question)
    if isinstance(other, Quantity) and other.unit == "%" and vocabulary.names_things(other_unit or "", asked):
        # "15% increase" is read as 15 %, unless the gold is such a phrase itself.
        other, other_unit = (other, other_unit) if isinstance(value, Quantity) else (other.value, "%")
    if "%" in (unit, other_unit):
        if rules.percent and unit is None and same(value, other):
            return True
        return _same_percent(value, unit, other, other_unit, same)
    if unit is not None and set(unit) == {"'"} and unit != other_unit:
        return False  # the gold does not say whether it means a length or a part of a degree
    if unit is None or other_unit is None:
        named = unit or other_unit or ""
        if unit is None and (wanted := _asked(named, rules)) is not None:
            return same_quantity(Quantity(value, wanted), Quantity(other, named), rules, same)
        known = units.read_unit(named) is not None or vocabulary.names_things(named, rules.known)
        return known and same(value, other)
    one, two = _unit(unit, rules), _unit(other_unit, rules)
    if one is not None and two is not None:
        if units.ANY_UNIT in (one.dimension, two.dimension) or one == two:
            return same(value, other)
        converted = Apply("mul", (other, Num(two.factor / one.factor)))
        return units.same_dimension(one.dimension, two.dimension) and same(value, converted)
    return (not rules.strict or vocabulary.same_things(unit, other_unit, rules.known)) and same(value, other)


def _asked(answered: str, rules: Rules) -> str | None:
    """Return the unit in which the question asks for the value, as in "in joules" or "how many joules".

    Args:
        answered: The unit that the answer has and the gold answer lacks.
        rules: The rules of the comparison, with the question.

    Returns:
        ``None`` if ``answered`` is not a unit with a dimension, if it contains the unit asked for, if the question
        contains ``answered``, if the question does not ask for exactly one unit, or if "how many" asks for a unit of
        another dimension.
    """
    if (unit := _unit(answered, rules)) is None or not rules.question:
        return None
    sentences = _SENTENCE.findall(rules.question)
    asking = " ".join(sentence for sentence in sentences if _ASKS.search(sentence))
    # A word of one or two letters, such as "in", is a unit of the question only after a number.
    known = [units.read_unit(found[0] or found[1]) for found in _UNIT_WORD.findall(rules.question)]
    said = [units.read_unit(word) for word in answered.split()]
    asked: dict[str, str] = {name: lead for lead, name in _IN_UNIT.findall(asking) if units.read_unit(name) is not None}
    if len(asked) != 1 or not unit.dimension or unit in known:
        return None
    ((only, lead),) = asked.items()
    wanted = units.read_unit(only)
    if wanted in said or wanted is None or (lead != "in" and wanted.dimension != unit.dimension):
        return None  # such as "118 a week" if the question asks how many dollars
    return only


_IN_UNIT = re.compile(
    r"\b(in|[Hh]ow many) ((?:square |cubic )?[a-z]{2,}(?: per [a-z]+)?)\b"
    r"(?=\s*(?:[,.;?!)]|\Z|(?:is|are|was|were|does|do|did|will|would|can|if|that|of|for|from|to|and|when)\b))"
)
"""Pattern of "in joules" or "how many joules"; if a noun follows ("in second place"), the word is not a unit."""
_UNIT_WORD = re.compile(r"\d\s*([^\W\d_]{1,2})\b|([^\W\d_]{3,})")
_SENTENCE = re.compile(r"[^.?!]+[.?!]*")
_ASKS = re.compile(r"\?|\b(?:find|give|express|answer|calculate|compute|determine|state|write)\b", re.IGNORECASE)
"""Pattern of a sentence that asks for the answer."""


def _parts(node: Node, other: Node) -> tuple[Node, str | None]:
    """Return a value and its unit; an angle counts as having a unit if the other value has a unit."""
    if isinstance(node, Quantity):
        return node.value, node.unit
    if isinstance(node, Apply) and node.op in ("deg", "rad") and isinstance(other, Quantity):
        return node.args[0], node.op
    return node, None


def _unit(text: str, rules: Rules) -> units.Unit | None:
    """Return the unit that a text names, such as "mol" in "mol of NaCl"; ``None`` if it names none."""
    measure, _, thing = text.partition(" of ")
    return units.read_unit(measure if thing and vocabulary.names_things(thing, rules.known) else text)


def _same_percent(value: Node, unit: str | None, other: Node, other_unit: str | None, same: Same) -> bool | None:
    """Compare a gold value with an answer if at least one of them is a percentage.

    25 % does not equal 25 (``Rules.percent`` is the only exception). A gold answer of 25 % equals 0.25; a gold decimal
    must equal the percentage exactly.
    """
    if unit == other_unit:
        return same(value, other)
    if unit == "%" and other_unit is None:
        return same(value, Apply("mul", (Num(Fraction(100)), other)))
    if unit is None and isinstance(value, Num) and value.decimals is not None:
        return same_expression(Num(value.value), Apply("div", (other, Num(Fraction(100)))), Rules())
    return False


def same_in_base(gold: Node, answer: Node) -> bool | None:
    """Compare numerals with a base, such as ``204_5``; return ``None`` if neither answer has a base.

    A missing base in the answer is accepted, like a missing unit. Numerals in different bases are not equal. If only
    the answer has a base, it must be 10.
    """
    one, other = _numeral(gold), _numeral(answer)
    if one is None and other is None:
        return None
    if other is None:
        return one is not None and one[0] == _digits(answer)
    return other == (one or (_digits(gold), "10"))  # without a base, a numeral is decimal


def _numeral(node: Node) -> tuple[str, str] | None:
    """Return the digits and the base of ``204_5`` or ``2A_{16}``; ``None`` for other nodes."""
    match node:
        case Apply(op="base", args=(Num(value=digits), Num(value=base))):
            return str(digits), str(base)
        case Apply(op="mul" | "neg", args=args):
            last = _split(args[-1])
            if last is not None and last[1] in _LETTER_BASES and (text := _digits(node)) is not None:
                return text.partition("_")[0], last[1]
    return None


_LETTER_BASES = frozenset({"11", "12", "13", "14", "15", "16", "20", "36"})


def _split(node: Node) -> tuple[str, str] | None:
    name, _, base = node.name.partition("_") if isinstance(node, Sym) else ("", "", "")
    return (name.upper(), base) if base else None


def _digits(node: Node) -> str | None:
    """Return adjacent digits and capital letters as text; ``None`` for other nodes."""
    match node:
        case Num(value=value, decimals=None):
            return str(value)
        case Sym(name=name):
            return name.upper()
        case Apply(op="neg", args=(inner,)):
            digits = _digits(inner)
            return None if digits is None else f"-{digits}"
        case Apply(op="mul", args=args):
            parts = [_digits(arg) for arg in args]
            return None if None in parts else "".join(part or "" for part in parts)
        case _:
            return None


def same_ratio(gold: Node, answer: Node, same: Same) -> bool | None:
    """Compare two ratios of equally many terms, three or more (``1:2:3``); return ``None`` for other nodes.

    Args:
        gold: The gold value.
        answer: The value to grade.
        same: Function that compares two values.
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
    """Compare two answers, one or both in words; a one-letter word may equal the variable of that name.

    Args:
        gold: The gold answer.
        answer: The answer to grade.
        rules: The rules of the comparison.
    """
    one, other = _name(gold), _name(answer)
    if one is None or other is None:
        return False
    lenient = not rules.strict and isinstance(gold, Words) and isinstance(answer, Words)
    return words.same_text(one, other) or (lenient and words.is_contained(one, other))


def _name(node: Node) -> str | None:
    if isinstance(node, Words):
        return node.text
    return node.name if isinstance(node, Sym) else None
