"""Reads statements of a change, such as "sales fell by 8%", as signed values, in the direction that the question names.

The question "By what percent did sales fall?" makes "sales fell by 8%" mean 8 %; the question "By what percent did
sales change?" makes it mean -8 %. If the question names no direction or several, the statement has no value.
"""

from __future__ import annotations

from functools import lru_cache

from rstar2_env.verification.compare.understood import asking_clauses
from rstar2_env.verification.read.combine import negative
from rstar2_env.verification.read.nodes import Node, Quantity, Relation, Words, rebuild
from rstar2_env.verification.read.vocabulary import change_said, direction

_CHANGES = frozenset({"change", "changes", "changed", "difference", "differ"})


def without_changes(node: Node, question: str | None) -> Node:
    """Replace each statement of a change in an answer, such as "sales fell by 8%", by the signed value of the change.

    If the question does not ask for a change, or names two directions, the statement loses its value.

    Args:
        node: The tree of an answer.
        question: The question; ``None`` if it is not known.
    """

    def change(part: Node) -> Node | None:
        match part:
            case Relation(ops=("=",), sides=(Words(text=said), value)) if (found := change_said(said)) is not None:
                subject, sign = found
            case Quantity(value=Quantity(unit="%") as value, unit=said) if sign := direction(said.lower()):
                subject = ""
            case _:
                return None
        asked = _direction_asked(question or "")
        if asked is None:
            return Words(said)
        value = value if sign == asked else negative(value)
        return Relation(("=",), (Words(subject), value)) if subject else value

    return rebuild(node, change)


@lru_cache(maxsize=256)
def _direction_asked(question: str) -> int | None:
    """Return the direction of change that a question asks for: 1 for a rise or for any change, -1 for a fall.

    Returns:
        ``None`` if the question asks for no change, or names two directions.
    """
    for clause in reversed(asking_clauses(question)):
        words = clause.lower().split()
        if found := {direction(word) for word in words} - {0}:
            return found.pop() if len(found) == 1 else None
        if not _CHANGES.isdisjoint(words):
            return 1
    return None
