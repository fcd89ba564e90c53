"""Reads statements whose value depends on the question: changes ("sales fell by 8%") and ratios with labels.

The question "By what percent did sales fall?" makes "sales fell by 8%" mean 8 %; the question "By what percent did
sales change?" makes it mean -8 %. If the question names no direction or several, the statement has no value. If the
question asks for the ratio of boys to girls, "the ratio of girls to boys is 3:2" means 2:3.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rstar2_env.verification.compare.understood import asking_clauses, meaning
from rstar2_env.verification.read.combine import negative
from rstar2_env.verification.read.nodes import Apply, Node, Quantity, Relation, Words, rebuild
from rstar2_env.verification.read.vocabulary import change_said, direction

_RATIO_OF = re.compile(r"\b(?:ratio|odds|proportions?) of ([^.?!,;:]+)", re.IGNORECASE)
_CHANGES = frozenset({"change", "changes", "changed", "difference", "differ"})


def without_changes(node: Node, question: str | None) -> Node:
    """Replace each statement of a change in an answer, such as "sales fell by 8%", by the signed value of the change.

    If the question does not ask for a change, or names two directions, the statement loses its value. A ratio with a
    label is turned to the order in which the question asks for it.

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
            case Relation(ops=("=",), sides=(Words(text=said), value)) if order := _other_order(said, question or ""):
                match value:
                    case Apply(op="ratio" | "div" as op, args=terms) if len(terms) == len(order):
                        return Relation(("=",), (Words(said), Apply(op, tuple(terms[at] for at in order))))
                return Words(said)
            case _:
                return None
        asked = _direction_asked(question or "")
        if asked is None:
            return Words(said)
        value = value if sign == asked else negative(value)
        return Relation(("=",), (Words(subject), value)) if subject else value

    return rebuild(node, change)


def _other_order(label: str, question: str) -> list[int]:
    """Return the positions of the parts in a ratio's label, in the order in which a question asks for the parts.

    The label "girls to boys" and a question for the ratio of boys to girls give [1, 0]. Empty if the order is the same,
    or if the question asks for no ratio of these parts.
    """
    parts = [meaning(part) for part in label.split(" of ", 1)[-1].split(" to ")]
    for asked in reversed(_RATIO_OF.findall(question)):
        wanted = [meaning(part) for part in asked.split(" to ")]
        order = [at for name in wanted for at, part in enumerate(parts) if part and part <= name]
        if sorted(order) == list(range(len(parts))):
            return order if order != sorted(order) else []
    return []


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
