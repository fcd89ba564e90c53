"""Compare the conditions and remarks after two answers: "for all integers n", "if x > 0", "for the trip".

A condition of the answer must equal the condition of the gold, or must not restrict the gold: it holds at every sampled
point where the gold has a value. Not covered: single points, such as the ends of an interval, and conditions on several
variables.
"""

from __future__ import annotations

import re
from fractions import Fraction

from rstar2_env.verification.compare.structure import items_of, without_condition
from rstar2_env.verification.read.lexer import ReadError
from rstar2_env.verification.read.names import DENIALS
from rstar2_env.verification.read.nodes import ONE, Apply, Given, Node, symbols, walk
from rstar2_env.verification.read.readings import readings
from rstar2_env.verification.read.vocabulary import LISTS, REMARKS, names_things
from rstar2_env.verification.values.ball import NoValueError, TooLargeError
from rstar2_env.verification.values.evaluate import Evaluator

_BITS = 128
_REALS = tuple(Fraction(tenths, 10) for tenths in (-93, -17, -4, 3, 16, 27, 91))
_COUNTS = tuple(map(Fraction, (1, 2, 3, 5, 8)))
"""Points of the letter ``n``, which counts from 1."""


def remarks_agree(gold: Node, answer: Node, known: frozenset[str]) -> bool:
    """Return whether the remarks on two answers allow them to be equal.

    A remark on the answer must equal the remark on the gold, or be a condition that does not restrict the gold, or
    consist of known words: "9 if careless" is not 9. If the gold has a negation, the answer must have it too.

    Args:
        gold: The gold answer.
        answer: The answer to grade.
        known: Words that may stand next to a number, from ``vocabulary.known_words``.
    """
    one, other = ({"".join(text.split()): text for text in _remarks(node)} for node in (gold, answer))
    if any(DENIALS.intersection(text.lower().split()) for name, text in one.items() if name not in other):
        return False
    return all(name in one or _holds(text, gold) or _is_aside(text, known) for name, text in other.items())


def _remarks(node: Node) -> list[str]:
    return [part.condition for part in walk(node) if isinstance(part, Given)]


def _is_aside(remark: str, known: frozenset[str]) -> bool:
    """Whether a remark consists of words that add no quantity: "for the trip"."""
    words = remark.lower().split()
    if words[0] in ("is", "are"):
        return REMARKS.issuperset(words)  # "7 is too small" is a statement about 7
    return re.search(r"[^\w\s.,'-]", remark) is None and names_things(remark, known)


def _holds(remark: str, gold: Node) -> bool:
    """Whether a remark names a set of numbers, or is a relation that holds wherever the gold has a value."""
    allowed = LISTS["around conditions"] | LISTS["sets of numbers"]
    words = {word.lower() for word in re.findall(r"(?<![\\a-zA-Z])[^\W\d_]{2,}|[^\x00-\x7f]", remark)}
    if not words <= allowed or remark.split()[0] in ("is", "are"):
        return False  # "7 is odd"
    if "not" in words or ("negative" in words and "non" not in words):
        return False  # "where k is not an integer"
    if "in" in words or "given" in words:
        return "in \\{" not in remark  # some values, not a set of numbers
    if re.search(r"[<>=]", remark) is None:
        return "if" not in words and bool(words & LISTS["sets of numbers"]) and not re.search(r"\d", remark)
    formula = " ".join(part for part in remark.split() if part == "and" or part.lower() not in allowed)
    try:
        condition = Apply("cases", (ONE, readings(formula)[0]))
    except ReadError:
        return False
    names = symbols(condition)
    if len(names) != 1 or not names <= symbols(gold):
        return False  # "7 for n = 2"
    values = [item.value for item in items_of(without_condition(gold))]
    others = dict.fromkeys(symbols(gold), Fraction(2))
    points = [{**others, name: at} for name in names for at in (_COUNTS if name == "n" else _REALS)]
    return all(_has_values([condition], point) or not _has_values(values, point) for point in points)


def _has_values(nodes: list[Node], point: dict[str, Fraction]) -> bool:
    try:
        return None not in [Evaluator(point, _BITS).value(node) for node in nodes]
    except (NoValueError, TooLargeError):
        return False
