"""Compares the conditions and remarks after two answers: "for all integers n", "if x > 0", "for the trip".

A condition of the answer is accepted in each of these cases:

- It equals a condition of the gold answer or the question.
- It names a set of numbers.
- It is proved to hold on the whole domain: for all values that the question and the gold answer allow, except points
  at which the gold answer has no real value (roots, logarithms). The condition may fail at isolated real points.

Conversely, a condition that the gold answer states after a comma or in brackets must follow from the answer and the
question. Conditions are relations, memberships in a set, and the words for signs, parity and sets of numbers. Not
covered: other words ("if n is prime"), and conditions on several variables that neither the gold answer nor the
question states.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from rstar2_env.verification.compare import relations, symbolic
from rstar2_env.verification.compare.conduct import formulas
from rstar2_env.verification.compare.equality import Rules
from rstar2_env.verification.compare.structure import items_of, without_condition
from rstar2_env.verification.compare.tidy import number
from rstar2_env.verification.read import names
from rstar2_env.verification.read.names import DENIALS, LISTS, RESTRICTION
from rstar2_env.verification.read.nodes import (
    INEQUALITIES,
    ONE,
    ZERO,
    Apply,
    BracketGroup,
    Const,
    Given,
    Node,
    Num,
    Relation,
    Sym,
    is_interval,
    key,
    symbols,
    walk,
)
from rstar2_env.verification.read.readings import possible_readings
from rstar2_env.verification.read.vocabulary import REMARKS, names_things
from rstar2_env.verification.values.ball import NoValueError, TooLargeError
from rstar2_env.verification.values.evaluate import INFINITY, MINUS_INFINITY, Evaluator, position


def remarks_agree(gold: Node, answer: Node, rules: Rules) -> bool:
    """Return whether two answers can be equal despite the conditions and remarks that follow them.

    A remark on the answer is accepted in each of these cases:

    - It equals a remark on the gold answer.
    - It is a condition that does not restrict the gold answer.
    - It consists of words that add no quantity, such as "for the trip".

    Any other remark makes the answers unequal: "9 if careless" does not equal 9.

    A negation in the gold answer must also be in the answer, and so must a condition in symbols alone, such as
    ``x > 0`` in ``x^2, x > 0``, unless that condition holds anyway.

    Args:
        gold: The gold answer.
        answer: The answer to grade.
        rules: The rules of the comparison, with the question.
    """
    one, other = ({"".join(text.split()): text for text in _remarks(node)} for node in (gold, answer))
    if any(DENIALS.intersection(text.lower().split()) for name, text in one.items() if name not in other):
        return False
    added = [text for name, text in other.items() if name not in one and not _is_aside(text, rules.known)]
    stated_alone = [text for text in one.values() if text.startswith(f"{RESTRICTION} ")]
    # If both restrict a variable, even a single point must agree: "x != 3" is not "x != 4".
    exact = _restricted(stated_alone) & _restricted(added)
    missing = [text for text in stated_alone if "".join(text.split()) not in other and _restricts(text, exact)]
    asked = _stated(gold, rules.question) if rules.question and (added or missing) else ()
    return all(_follows(text, gold, list(one.values()), asked, exact) for text in added) and all(
        _follows(text, answer, list(other.values()), asked, exact) for text in missing
    )


def _stated(gold: Node, question: str) -> tuple[Node, ...]:
    """Return the question's conditions; a gold label ``f(x)`` adds the domain that the question states for f."""
    found: list[Node] = list(stated(question))
    for item in items_of(without_condition(gold)):
        match item.label:
            case Apply(op="mul", args=(Sym(name=function), Sym(name=variable))):
                found += domain_stated(question, function, variable)
    return tuple(found)


def _restricted(remarks: Iterable[str]) -> frozenset[str]:
    """Return the variables that remarks restrict; a remark that only names a set of numbers (``k in Z``) does not."""
    found = [part for text in remarks for part in relations_of(text) or () if not is_number_set(part)]
    return frozenset().union(*map(symbols, found))


def _remarks(node: Node) -> list[str]:
    """Return the remarks of an answer; ``A = B`` in the label ``P(A = B)`` is the argument of a name, not a remark."""
    labels = [side for part in walk(node) if isinstance(part, Relation) for side in part.sides[:-1]]
    arguments = {id(side) for side in labels if isinstance(side, Given) and isinstance(side.body, Sym)}
    return [part.condition for part in walk(node) if isinstance(part, Given) and id(part) not in arguments]


def _is_aside(remark: str, known: frozenset[str]) -> bool:
    """Whether a remark, such as "for the trip", adds no quantity: its words are harmless or in ``known``."""
    words = remark.lower().split()
    if words[0] in ("is", "are"):
        return REMARKS.issuperset(words)  # "7 is too small" says something about 7
    return re.search(r"[^\w\s.,'-]", remark) is None and names_things(remark, known)


def _restricts(remark: str, exact: frozenset[str]) -> bool:
    """Whether a remark's conditions can be parsed, and an answer must not omit all of them (see ``_is_thin``)."""
    conditions = relations_of(remark)
    return conditions is not None and not all(_is_thin(part, exact) for part in conditions)


def _is_thin(condition: Node, exact: frozenset[str]) -> bool:
    """Whether a condition may be omitted: a ``!=`` that is not solved for one variable (``a != b``, ``cos x != 0``).

    A condition on a variable in ``exact`` must not be omitted: both answers restrict this variable, so even a single
    excluded point makes a difference.
    """
    names = symbols(condition)
    unequal = isinstance(condition, Relation) and set(condition.ops) == {"!="}
    return unequal and not names & exact and (len(names) != 1 or solution(condition, min(names)) is None)


def _follows(
    remark: str, gold: Node, remarks: Sequence[str], asked: Sequence[Node], exact: frozenset[str] = frozenset()
) -> bool:
    """Whether each condition of a remark is stated in ``remarks`` or ``asked``, or holds wherever ``gold`` has a value.

    Args:
        remark: The remark on one of the two answers.
        gold: The other answer.
        remarks: The remarks on the other answer.
        asked: The conditions of the question.
        exact: The variables that both answers restrict; for these, even a single excluded point makes a difference.
    """
    if (conditions := relations_of(remark)) is None:
        return False
    known: list[Node] = [*(part for text in remarks for part in relations_of(text) or ()), *asked]
    values = [item.value for item in items_of(without_condition(gold))]
    own = [part for part in conditions if is_number_set(part)]
    for condition in (part for part in conditions if not is_number_set(part)):
        names = symbols(condition)
        domain = domain_of(next(iter(names)), values, known, own) if len(names) == 1 else None
        if domain is None and len(names) == 1:
            return False  # nothing is stated about the variable, or the cases of the question exclude each other
        if any(_same(condition, part) for part in known):
            continue
        if domain is None or not holds_on(domain, condition, values, exact=bool(names & exact)):
            return False
    return True


def _same(one: Node, other: Node) -> bool:
    """Whether two conditions are the same relation, possibly with the sides swapped (``x > 0``, ``0 < x``)."""
    if key(one) == key(other):
        return True
    if not isinstance(one, Relation) or not isinstance(other, Relation) or symbols(one) != symbols(other):
        return False
    same = relations.same_equation(one, other, Rules(), lambda left, right: [*map(key, left)] == [*map(key, right)])
    return same is True


_BITS = 128
_NARROW = 1e-9
"""Relative width below which an interval counts as one point, since its ends are known only as floats."""

_MANY = 8
"""Widest interval in which whole numbers are checked one by one."""

_FROM_ONE = (relations.Piece(ONE, INFINITY, low_closed=True, high_closed=False),)
_FROM_ZERO = (relations.Piece(ZERO, INFINITY, low_closed=True, high_closed=False),)


@dataclass(frozen=True, slots=True)
class Domain:
    """The values that a variable may have.

    Attributes:
        name: Name of the variable.
        pieces: Intervals that contain the values.
        whole: Whether the values are only the whole numbers in the intervals.
    """

    name: str
    pieces: tuple[relations.Piece, ...]
    whole: bool


def domain_of(name: str, values: Sequence[Node], stated: Sequence[Node], own: Sequence[Node] = ()) -> Domain | None:
    """Return the domain of a variable; ``None`` if no condition is about it, or if the conditions exclude each other.

    Args:
        name: The variable.
        values: The values of the gold answer.
        stated: The conditions of the question and of the gold answer.
        own: The answer's own conditions that name sets of numbers, such as ``k in N``; N begins with 1.
    """
    about = [node for node in stated if symbols(node) == {name}]
    if not about and not any(name in symbols(value) for value in values):
        return None
    pieces: tuple[relations.Piece, ...] = relations.EVERYTHING
    known = [solution(node, name) for node in about]
    if name == "n" and all(part is None for part in known):
        known.append(_FROM_ONE)  # by convention, n counts from 1
    known += [_FROM_ONE for node in own if symbols(node) == {name} and _is_set(node, "N")]
    for part in (*known, *(solution(demand, name) for demand in _demands(values, name))):
        together = None if part is None else relations.intersection(pieces, part)
        pieces = together if together is not None else pieces
    whole = name == "n" or any(_is_set(node, "ZN") for node in (*about, *own) if name in symbols(node))
    return Domain(name, pieces, whole) if pieces else None


def holds_on(domain: Domain, condition: Node, values: Sequence[Node], *, exact: bool = False) -> bool:
    """Return whether a condition certainly holds on a domain, at all points where the gold answer has a value.

    Args:
        domain: The values that the condition's variable may have.
        condition: The condition.
        values: The values of the gold answer.
        exact: Whether the condition must hold at isolated points too.
    """
    allowed = solution(condition, domain.name)
    left = None if allowed is None else relations.intersection(domain.pieces, relations.complement(allowed))
    return left is not None and not any(_counts(piece, domain, values, exact=exact) for piece in left)


def _counts(piece: relations.Piece, domain: Domain, values: Sequence[Node], *, exact: bool) -> bool:
    """Whether an interval that a condition excludes counts, because the gold answer may be defined there.

    In a domain of real numbers, a very narrow interval counts only with ``exact``.
    """
    low, high = position(piece.low), position(piece.high)
    if low is None or high is None:
        return True
    if not domain.whole:
        wide = high - low > _NARROW * (1 + min(abs(low), abs(high)))
        return wide or (exact and _has_values(values, domain.name, Fraction(low)))
    if math.isinf(low) or math.isinf(high) or high - low > _MANY:
        return True
    first = math.ceil(low) if piece.low_closed else math.floor(low) + 1
    last = math.floor(high) if piece.high_closed else math.ceil(high) - 1
    return any(_has_values(values, domain.name, Fraction(at)) for at in range(first, last + 1))


def _has_values(values: Sequence[Node], name: str, at: Fraction) -> bool:
    others = {other for value in values for other in symbols(value)} - {name}
    point = {**dict.fromkeys(others, Fraction(2)), name: at}
    try:
        return None not in [Evaluator(point, _BITS).value(value) for value in values]
    except (NoValueError, TooLargeError):
        return False


def solution(condition: Node, name: str) -> tuple[relations.Piece, ...] | None:
    """Return the real values of a variable for which a condition holds; ``None`` if they are not known.

    Args:
        condition: A relation, or several with the same variable, joined by "or".
        name: The variable.
    """
    if symbols(condition) != {name}:
        return None
    if _is_set(condition, "ZRQ"):
        return relations.EVERYTHING
    if _is_set(condition, "N"):
        return _FROM_ZERO
    found = relations.read_set(condition)
    if found is not None and found.variable == key(Sym(name)):
        ends = [end for piece in found.pieces for end in (piece.low, piece.high)]
        return found.pieces if None not in [position(end) for end in ends] else None
    match condition:
        case Relation(ops=("=",), sides=(Sym(), value)) if position(value) is not None:
            return (relations.Piece(value, value, low_closed=True, high_closed=True),)
        case Relation(ops=ops, sides=sides) if set(ops) <= INEQUALITIES:
            steps = zip(ops, pairwise(sides), strict=True)
            return relations.intersection(*(_solved(op, *pair, name) for op, pair in steps if any(map(symbols, pair))))
        case _:
            return None


def _solved(op: str, left: Node, right: Node, name: str) -> tuple[relations.Piece, ...] | None:
    """Solve one inequality: with ``read_set`` if the variable already stands alone on one side, else with SymPy."""
    simple = relations.read_set(Relation((op,), (left, right)))
    if simple is not None and simple.variable == key(Sym(name)):
        return simple.pieces
    found = symbolic.solved(op, left, right, name)
    if found is None:
        return None
    return tuple(relations.Piece(_end(low), _end(high), *closed) for low, high, *closed in found)


def _end(value: float) -> Node:
    if math.isinf(value):
        return INFINITY if value > 0 else MINUS_INFINITY
    return Num(Fraction(value))


def _is_set(node: Node, kinds: Iterable[str]) -> bool:
    """Whether a node states that a variable is in one of the sets of numbers ``kinds``."""
    match node:
        case Relation(ops=("in",), sides=(Sym(), Const(name=kind))):
            return kind in kinds
        case _:
            return False


def is_number_set(node: Node) -> bool:
    """Return whether a node only states which set of numbers contains a variable: ``k in Z``."""
    return _is_set(node, "ZNQRC")


def _demands(values: Sequence[Node], name: str) -> Iterator[Relation]:
    """Iterate over the inequalities in one variable, ``name``, that must hold for the values to be real."""
    for part in (part for value in values for part in walk(value)):
        if not isinstance(part, Apply) or any(isinstance(inner, BracketGroup) for inner in part.args):
            continue
        inner = part.args[0]
        if symbols(inner) != {name}:
            continue
        match part:
            case Apply(op="root", args=(_, Num(value=index))) if index % 2 == 0:
                yield Relation((">=",), (inner, ZERO))
            case Apply(op="pow", args=(_, exponent)) if (number(exponent) or ONE.value).denominator % 2 == 0:
                yield Relation((">=",), (inner, ZERO))
            case Apply(op="ln" | "log" | "lg"):
                yield Relation((">",), (inner, ZERO))
            case Apply(op="asin" | "acos"):
                yield Relation(("<=", "<="), (Num(Fraction(-1)), inner, ONE))
            case Apply(op="acosh"):
                yield Relation((">=",), (inner, ONE))


_WORD = re.compile(r"(?<![\\a-zA-Z])[^\W\d_]{2,}|[^\x00-\x7f]")
_ARTICLE = re.compile(r"(?<![\\a-zA-Z])a (?=[a-zA-Z]{2})")
_NON = re.compile(r"\bnon[- ]\s*(?=negative|zero|positive)", re.IGNORECASE)
_SETS = {"integer": "Z", "natural": "N", "whole": "N", "rational": "Q", "real": "R", "complex": "C", "number": "R"}
_SIGNS = {"positive": ">", "negative": "<", "nonnegative": ">=", "nonpositive": "<=", "nonzero": "!="}
_PARITIES = {"odd": 1, "even": 0}
_ADJECTIVES = frozenset({*_SIGNS, *_PARITIES})
_KNOWN = LISTS["around conditions"] | LISTS["sets of numbers"] | _ADJECTIVES
_NUMBER_SET = re.compile(
    r"\\in\s*\\mathbb\s*\{\s*(?P<name>[ZNQRC])\s*\}"
    r"(?:\s*[\^_]\s*\{?\s*(?:[+*\dnm]|(?:>=?|!=)\s*0)(?:\s*\})?)*(?!\s*[\^_\\])"
)
"""Pattern of a set of numbers in a formula, also ``Z^+`` and ``Q_{>0}``."""

_LETTER = r"\$?(?<![\\a-zA-Z])[a-zA-Z](?![a-zA-Z])\$?"
_LETTERS = rf"(?P<letters>{_LETTER}(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+){_LETTER})*)"
_KIND = (
    r"(?P<kind>(?:(?:non-?)?(?:positive|negative|zero|odd|even|real|rational|complex|whole|natural)\s+)*"
    r"(?:integers?|numbers?|reals)|(?:non-?)?(?:positive|negative|zero)|odd|even)"
)
_SAID = (
    re.compile(rf"\b{_KIND}\s+{_LETTERS}"),
    re.compile(rf"{_LETTERS}\s+(?:is|are|be|denotes?)\s+(?:(?:an?|any|all|both)\s+)*{_KIND}\b"),
)
"""Patterns of a condition that a question states in words: "a positive integer n", "x and y are nonzero"."""

_DOMAIN = re.compile(
    r"(?<![\\a-zA-Z])(?P<name>[a-zA-Z])(?:\([a-z]\))?"
    r"(?:\s*(?:\\colon|:)(?P<arrow>)|\$?\s+(?:(?:is|be)\s+)?(?:defined\s+)?on\s+(?:the\s+interval\s+)?\$?)\s*"
    r"(?:\\mathbb\s*(?:\{\s*R\s*\}|R)(?P<sign>\s*[\^_]\s*\{?\s*(?:\+|(?:>=?|\\geq?)\s*0)\s*\}?)"
    r"|(?P<interval>\\?[(\[][^()\[\]$]*,[^()\[\]$]*[)\]]))"
    r"(?(arrow)\s*(?:\\to|\\rightarrow|→|->))"
)
"""Pattern of a function and its domain: ``f: (0, \\infty) \\to``, ``f: \\mathbb{R}^+ \\to``, "f on (0, 1)"."""


@lru_cache(maxsize=256)
def relations_of(text: str) -> tuple[Relation | BracketGroup, ...] | None:
    """Return the relations of a condition; ``None`` if a part of it is not understood.

    A set of numbers becomes a relation such as ``k in Z`` if a variable is named, and no relation otherwise. Conditions
    joined by "or" (``x < 0 or x > 1``) become one list.

    Args:
        text: The condition as the parser returns it, including words such as "for all".
    """
    text = _NON.sub("non", _ARTICLE.sub("", text))
    words = {word.lower() for word in _WORD.findall(text)} - {"or"} - names.GREEK
    if not words <= _KNOWN or "not" in words or text.split()[0].lower() in ("is", "are"):
        return None
    members: list[tuple[str, str]] = []

    def member(match: re.Match[str]) -> str:
        members.append((text[: match.start()].split()[-1], match["name"]))
        return ""

    formula = _NUMBER_SET.sub(member, text) if "\\in" in text else text
    formula = " ".join(part for part in formula.split() if part.lower() not in _KNOWN - {"and"})
    formula = formula.strip().removesuffix("and").strip()
    if not formula:
        named = bool(words & LISTS["sets of numbers"]) and "if" not in words
        return () if named and not words & _ADJECTIVES else None
    if not (trees := possible_readings(formula)):
        return None
    tree = trees[0]
    parts = tree.items if isinstance(tree, BracketGroup) and not tree.open and tree.close != "or" else (tree,)
    found: list[Relation | BracketGroup] = []
    for part in parts:
        if isinstance(part, Relation) or (isinstance(part, BracketGroup) and part.close == "or"):
            found.append(part)
        elif not isinstance(part, Sym):
            return None  # such as "for 5"
    letters = [Sym(name) for name in sorted(symbols(tree))]
    if len(letters) > 1 and found and words & _ADJECTIVES:
        return None
    said = [relation for letter in letters for relation in _of_words(letter, words)]
    if not (found or said or members):
        return None  # such as "for x"
    declared = [Relation(("in",), (Sym(name), Const(kind))) for name, kind in members if name.isalnum()]
    return (*declared, *said, *found)


def _of_words(letter: Sym, words: set[str]) -> Iterable[Relation]:
    """Iterate over the relations, such as ``n > 0``, that words such as "positive" state about a letter."""
    kinds = [_SETS[word.removesuffix("s")] for word in words if word.removesuffix("s") in _SETS]
    for kind in sorted(set(kinds) - {"R"} or set(kinds)):
        # "positive integers" become the set N; "positive reals" become an inequality.
        natural = kind == "Z" and words & {"positive", "nonnegative"}
        yield Relation(("in",), (letter, Const("N" if natural else kind)))
    for word in sorted(words & _SIGNS.keys()):
        yield Relation((_SIGNS[word],), (letter, ZERO))
    for word in sorted(words & _PARITIES.keys()):
        yield Relation(("=",), (Apply("mod", (letter, Num(Fraction(2)))), Num(Fraction(_PARITIES[word]))))


@lru_cache(maxsize=256)
def stated(question: str) -> tuple[Relation | BracketGroup, ...]:
    """Return the conditions that a question states: inequalities, memberships in sets, and values of variables.

    Args:
        question: The question.
    """
    found: list[Relation | BracketGroup] = [
        node for node in formulas(question) if isinstance(node, Relation) and _is_condition(node)
    ]
    for pattern in _SAID:
        for match in pattern.finditer(question):
            letters = re.findall(r"[a-zA-Z]", re.sub(r"\band\b", " ", match["letters"]))
            found += relations_of(f"for {match['kind']} {' and '.join(letters)}") or ()
    return tuple(found)


@lru_cache(maxsize=256)
def domain_stated(question: str, function: str, variable: str) -> tuple[Relation, ...]:
    """Return the condition on a variable that follows from a function's domain in a question; empty if none is stated.

    Args:
        question: The question; if it states two domains of the function, neither counts.
        function: The letter of the function.
        variable: The variable.
    """
    found = {match["sign"] or match["interval"] for match in _DOMAIN.finditer(question) if match["name"] == function}
    if len(found) != 1:
        return ()
    said = "".join(found.pop().split())
    if said[0] in "^_":
        positive = ">0" in said or said.startswith(("^+", "^{+"))
        return (Relation((">" if positive else ">=",), (Sym(variable), ZERO)),)
    intervals = filter(is_interval, possible_readings(said)[:1])
    return tuple(Relation(("in",), (Sym(variable), interval)) for interval in intervals)


def _is_condition(node: Relation) -> bool:
    """Whether a relation in a question is a condition or gives a letter a value; other relations are definitions."""
    if node.ops == ("=",):
        return isinstance(node.sides[0], Sym) and not symbols(node.sides[1])
    return set(node.ops) <= {*INEQUALITIES, "in"}
