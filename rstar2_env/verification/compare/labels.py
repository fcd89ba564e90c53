"""Compares and orders the labels of the items of an answer, such as x and y in ``x = 3, y = 4``."""

from __future__ import annotations

from rstar2_env.verification.compare.structure import Item
from rstar2_env.verification.read.nodes import Apply, BracketGroup, Node, Sym, key

INDICES = frozenset("ijklmn")
"""Letters that are indices when they are subscripts, so that another letter may replace them."""


def distinct_labels(items: list[Item]) -> bool:
    """Return whether there are several items, and each has a label that differs from the other labels."""
    labels = [key(item.label) for item in items if item.label is not None]
    return len(labels) == len(items) == len(set(labels)) and len(labels) > 1


def by_label(label: Node | None, items: list[Item]) -> list[Item]:
    """Sort items whose labels are distinct variables (``y = -4, x = 3``); return other items unchanged.

    The order is that of the tuple ``label`` if it has the same variables, otherwise alphabetical.
    """
    if not distinct_labels(items) or not all(isinstance(item.label, Sym) for item in items):
        return items
    names = [key(item) for item in label.items] if isinstance(label, BracketGroup) else []
    labels = [key(item.label) for item in items if item.label is not None]
    order = names if set(names) == set(labels) else sorted(labels)
    return sorted(items, key=lambda item: order.index(key(item.label or Sym(""))))


def is_axis(label: Node) -> bool:
    """Return whether a label is a coordinate (x, y or z)."""
    return isinstance(label, Sym) and label.name in ("x", "y", "z")


def subscripts_differ(gold: Node, answer: Node) -> bool:
    """Return whether two labels differ only in a subscript (``u_x``, ``u_y``) that is not an index (``a_n``)."""
    if not isinstance(gold, Sym) or not isinstance(answer, Sym):
        return False
    one, _, index = gold.name.partition("_")
    other, _, other_index = answer.name.partition("_")
    return one == other and bool(index and other_index) and not (index in INDICES and other_index in INDICES)


def align_arguments(gold: Node, answer: Node) -> dict[str, str] | None:
    """Return the renaming that turns an answer's label ``f(z)`` into the gold's ``f(x)``; ``None`` for other labels."""
    match gold, answer:
        case Apply(op="mul", args=(Sym(), *one)), Apply(op="mul", args=(Sym(), *other)) if len(one) == len(other):
            pairs = zip(one, other, strict=True)
            names = [
                (right.name, left.name) for left, right in pairs if isinstance(left, Sym) and isinstance(right, Sym)
            ]
            return dict(names) if len(names) == len(one) else None
        case Sym(name=one), Sym(name=other) if one[:-1] == other[:-1] and one[-2:-1] == "_":
            return {other[-1]: one[-1]} if one[-1] in INDICES and other[-1] in INDICES else None
        case _:
            return None
