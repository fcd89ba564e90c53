"""Compares the conditions and remarks after two answers: "for all integers n", "if x > 0", "for the trip".

A condition of the answer is accepted in each of these cases:

- It equals a condition of the gold answer or the question.
- It names a set of numbers.
- It is proved to hold on the whole domain: for all values that the question and the gold answer allow.

In the same way, a condition of the gold answer after a comma or in brackets must follow from the answer and the
question. Not covered: conditions on several variables that neither the gold answer nor the question states.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rstar2_env.verification.compare.conditions.domain import domain_of, holds_on, is_number_set, solution
from rstar2_env.verification.compare.conditions.stated import domain_stated, relations_of, stated
from rstar2_env.verification.compare.equality import Rules
from rstar2_env.verification.compare.relations import same_equation
from rstar2_env.verification.compare.structure import items_of, without_condition
from rstar2_env.verification.read.names import DENIALS, RESTRICTION
from rstar2_env.verification.read.nodes import Apply, Given, Node, Relation, Sym, key, symbols, walk
from rstar2_env.verification.read.vocabulary import REMARKS, names_things


def remarks_agree(gold: Node, answer: Node, rules: Rules) -> bool:
    """Return whether two answers can be equal despite the conditions and remarks that follow them.

    A remark on the answer is accepted in each of these cases; "9 if careless" does not equal 9:

    - It equals a remark on the gold answer.
    - It is a condition that does not restrict the gold answer.
    - It consists of known words.

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
    asked = _stated(gold, rules.question) if rules.question else ()
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
    """Return the variables that remarks restrict; naming a variable's set of numbers (``k in Z``) does not count."""
    found = [part for text in remarks for part in relations_of(text) or () if not is_number_set(part)]
    return frozenset().union(*map(symbols, found))


def _remarks(node: Node) -> list[str]:
    """Return the remarks of an answer; ``A = B`` in the label ``P(A = B)`` is the argument of a name, not a remark."""
    labels = [side for part in walk(node) if isinstance(part, Relation) for side in part.sides[:-1]]
    arguments = {id(side) for side in labels if isinstance(side, Given) and isinstance(side.body, Sym)}
    return [part.condition for part in walk(node) if isinstance(part, Given) and id(part) not in arguments]


def _is_aside(remark: str, known: frozenset[str]) -> bool:
    """Whether a remark consists of ``known`` or harmless words, which add no quantity: "for the trip"."""
    words = remark.lower().split()
    if words[0] in ("is", "are"):
        return REMARKS.issuperset(words)  # "7 is too small" says something about 7
    return re.search(r"[^\w\s.,'-]", remark) is None and names_things(remark, known)


def _restricts(remark: str, exact: frozenset[str]) -> bool:
    """Whether a remark's conditions can be read, and one of them must not be omitted (see ``_is_thin``)."""
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
    """Whether each condition of a remark is stated elsewhere, or holds wherever the gold answer has a value.

    Args:
        remark: The remark on one of the two answers.
        gold: The other answer.
        remarks: The remarks on the other answer.
        asked: The conditions of the question.
        exact: The variables that both answers restrict; for these, even a single excluded point makes a difference.
    """
    conditions = relations_of(remark)
    if conditions is None:
        return False
    known: list[Node] = [part for text in remarks for part in relations_of(text) or ()]
    known += asked
    values = [item.value for item in items_of(without_condition(gold))]
    own = [part for part in conditions if is_number_set(part)]
    for condition in conditions:
        if is_number_set(condition):
            continue
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
    return same_equation(one, other, Rules(), lambda left, right: list(map(key, left)) == list(map(key, right))) is True
