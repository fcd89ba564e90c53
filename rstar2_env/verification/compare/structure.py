"""Splits an answer into its parts: labels, conditions, items, plus-minus signs, entries of vectors.

Covered: ``x = 7`` is 7 under the label x; ``a = 2, b = 3`` are labelled items; the values in ``x = 1, 2`` share a
label; a chain ``1/3 ~ 0.33`` has an exact side; ``1 +- 2`` is two values; ``c (1, 2) + (3, 4)`` has two entries. Not
covered: comparing the parts (see ``answers``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod

from rstar2_env.verification.read.names import APPROXIMATIONS, FUNCTIONS
from rstar2_env.verification.read.nodes import (
    Apply,
    Big,
    BracketGroup,
    Const,
    Given,
    Matrix,
    Node,
    Num,
    Quantity,
    Relation,
    Sym,
    Words,
    children,
    is_braced,
    key,
    rebuild,
    replace_symbols,
    symbols,
    walk,
)

MAX_EXPANSION = 64
"""Largest number of values into which the plus-minus signs of an answer are expanded."""

MAX_WORDS_IN_LIST = 8
"""Length, in words, of the longest text that "and" splits into items; a longer text is a sentence."""

_FUNCTIONS = frozenset(FUNCTIONS.values()) | {"max", "min"}
_ARGUMENTS = Num | BracketGroup | Const | Given | Words


@dataclass(frozen=True, slots=True)
class Item:
    """One value of an answer, with its label; the label is ``None`` if the value has no label."""

    label: Node | None
    value: Node


def is_label(node: Node) -> bool:
    """Return whether a node is the name of a quantity: ``x``, ``f(x)``, ``a_3``, ``|AB|``, ``P(X > 2)``."""
    match node:
        case Sym():
            return True
        case Words(text=text):
            return text.strip() not in ("True", "true", "False", "false", "Yes", "yes", "No", "no")
        case Given(body=body) | Quantity(value=Sym() as body):
            return is_label(body)
        case (
            BracketGroup(open="(", items=parts)
            | Apply(op="abs" | "norm" | "div" | "ratio" | "conj" | "sub", args=parts)
        ):
            return all(map(is_label, parts))
        case Apply(op="mul", args=(first, *rest)):
            return _names(first) and all(_names(arg) or isinstance(arg, _ARGUMENTS) for arg in rest)
        case Apply(op=op, args=args):
            # sin A, det(A), Var(X): functions of names alone.
            return op in _FUNCTIONS and all(_names(arg) for arg in args)
        case _:
            return False


def _names(node: Node) -> bool:
    match node:
        case Apply(op="pow", args=(Sym(), Num(value=power) | Apply(op="neg", args=(Num(value=power),)))):
            return abs(power) == 1  # the inverse of a function
    return isinstance(node, Sym) or (isinstance(node, Apply) and node.op == "mul" and is_label(node))


def is_applied(label: Node) -> bool:
    """Return whether a label is a function of an argument, ``f(x)``, rather than a product ``xy``."""
    match label:
        case Apply(op="mul", args=(Sym(name=name), *_)):
            return name[0] not in _FACTORS
        case _:
            return isinstance(label, Apply)


_FACTORS = frozenset("abcdklmnxz")
"""Letters that are factors and not names of functions in a product of letters: ``ax``, unlike ``fx``."""


def is_condition(node: Node) -> bool:
    """Return whether an item is a condition on a parameter (``k in Z``) rather than a value."""
    if isinstance(node, Relation) and node.ops and node.ops[-1] == "in":
        target = node.sides[-1]
        if any(isinstance(part, Apply) and part.op in ("union", "inter", "diff") for part in walk(target)):
            return False  # a part of a set of numbers is a restriction
        return any(isinstance(part, Const) and part.name in "ZNQRC" for part in walk(target)) or (
            isinstance(target, Sym | Apply) and any(name.startswith(("Z", "N")) for name in symbols(target))
        )
    return isinstance(node, Given) and node.body == Words("")


def items_of(node: Node) -> list[Item]:
    """Return the items of an answer. A label also applies to the items that follow it, as in ``x = 1, 2``."""
    parts = list(node.items) if isinstance(node, BracketGroup) and node.open == "" else _split_words(node)
    if len(parts) > 1:
        parts = [part for part in parts if not is_condition(part)] or parts
    items = list(map(_item_of, parts))
    labels = {key(item.label) for item in items if item.label is not None}
    if len(items) > 1 and items[0].label is not None and len(labels) == 1:
        items = [Item(items[0].label, item.value) for item in items]
    return items


def _split_words(node: Node) -> list[Node]:
    """Return the items of a short list in words, such as "line segment and circle"; otherwise only the node."""
    if isinstance(node, Words) and " and " in node.text and len(node.text.split()) <= MAX_WORDS_IN_LIST:
        return [Words(part.strip()) for part in node.text.split(" and ")]
    return [node]


def _item_of(part: Node) -> Item:
    """Convert a part of an answer to an item; a list of labelled items becomes a tuple."""
    part = without_condition(part)
    if isinstance(part, Relation):
        return _from_relation(part)
    inner = items_of(part) if isinstance(part, BracketGroup) and part.open == "" and part.items else []
    labelled = len(inner) > 1 and all(item.label is not None for item in inner)
    return _as_tuple(inner) if labelled else Item(None, part)


def _as_tuple(items: list[Item]) -> Item:
    """Return labelled items as one tuple, whose label is the tuple of their labels."""
    labels = BracketGroup("(", ")", tuple(item.label for item in items if item.label is not None))
    return Item(labels, BracketGroup("(", ")", tuple(item.value for item in items)))


def _from_relation(part: Relation) -> Item:
    sides, ops = list(part.sides), list(part.ops)
    if ops == ["in"] and is_label(sides[0]) and is_braced(sides[1]):
        return Item(sides[0], sides[1])
    if ops[-1] == "equiv" and isinstance(sides[-1], Apply) and sides[-1].op == "pmod":
        ops[-1] = "="
    if "->" in ops and isinstance(sides[0], Sym) and "_" not in sides[0].name:
        return Item(None, part)  # "x -> 5" is not 5; a function or the term of a sequence has its limit as its value
    if not all(op in ("=", "~", "->") for op in ops):
        named = ops[0] == "=" and isinstance(sides[0], Words) and len(sides) > 2  # such as "the solution is x > 5"
        return _from_relation(Relation(tuple(ops[1:]), tuple(sides[1:]))) if named else Item(None, part)
    if len(sides) == 2 and is_label(sides[1]) and not is_label(sides[0]) and ops[0] == "=":
        sides.reverse()
    names = next((at for at, side in enumerate(sides[:-1]) if not is_label(side)), len(sides) - 1)
    label = sides[0] if names else None
    sides, ops = sides[names:], ops[names:]
    if len(sides) == 1:
        value = without_condition(sides[0])
        if label is not None and key(label) == key(value):
            return Item(None, part)  # x = x
        return Item(label, value)
    if label is None and len(sides) == 2 and ops == ["="]:
        return Item(None, part)  # an equation
    return Item(label, Relation(tuple(ops), tuple(sides)))


def sum_of_labels(node: Node) -> Node | None:
    """Return the number in ``m + n = 42``, ``f(2) + f(3) = 42`` or ``lim f(x) = 42``; ``None`` for other nodes."""
    if not isinstance(node, Relation) or set(node.ops) != {"="} or symbols(node.sides[-1]):
        return None
    left = node.sides[0]
    if isinstance(left, Big) and left.kind == "lim":
        return node.sides[-1] if is_label(left.body) else None
    adds = isinstance(left, Apply) and left.op == "add" and all(map(_is_multiple, left.args))
    return node.sides[-1] if adds else None


def _is_multiple(term: Node) -> bool:
    """Whether a term is a label, possibly with a sign or a numeric factor."""
    match term:
        case Apply(op="neg", args=(inner,)):
            return _is_multiple(inner)
        case Apply(op="mul", args=(Num(), *rest)):
            return bool(rest) and is_label(rest[0] if len(rest) == 1 else Apply("mul", tuple(rest)))
        case _:
            return is_label(term)


def exact_side(node: Node) -> tuple[Node, list[Node]]:
    """Return the exact value in a chain such as ``1/3 ~ 0.33`` or ``2 + 2 = 4``, and the other sides of the chain.

    An equation with variables is returned unchanged.
    """
    if not isinstance(node, Relation) or not {"=", "~"}.issuperset(node.ops):
        return node, []
    if node.ops == ("=",) and symbols(node):
        return node, []
    chosen = node.sides[node.ops.index("~") if "~" in node.ops else -1]
    return chosen, [side for side in node.sides if side is not chosen]


def is_approximate(node: Node) -> bool:
    """Return whether an answer is only approximate, like "about 13" or ``x ~ 13``, but not ``600/7 ~ 85.7``."""
    for part in walk(node):
        if isinstance(part, Relation) and "~" in part.ops and all(map(is_label, part.sides[: part.ops.index("~") + 1])):
            return True
        said = part.unit if isinstance(part, Quantity) else part.condition if isinstance(part, Given) else ""
        words = re.findall(r"[a-z]+", said.lower())
        # Within a condition, "rotated about the axis" says nothing about the value.
        if APPROXIMATIONS.intersection(words if isinstance(part, Quantity) else words[:1] + words[-1:]):
            return True
    return False


def without_condition(node: Node) -> Node:
    """Return the node without its conditions and remarks, such as "for all integers n"."""
    while isinstance(node, Given) and node.body != Words(""):
        node = node.body
    return node


def group_by_labels(items: list[Item]) -> list[Item]:
    """Combine ``x = 1, y = 2, x = 3, y = 4`` into two tuples (1, 2) and (3, 4); return other items unchanged."""
    labels = [key(item.label) for item in items if item.label is not None]
    period = len(set(labels))
    if len(labels) != len(items) or not 1 < period < len(items):
        return items
    if labels != labels[:period] * (len(labels) // period):
        return items
    return [_as_tuple(items[at : at + period]) for at in range(0, len(items), period)]


def expand_signs(node: Node) -> list[Node]:
    """Return the values of a node with plus-minus signs, each sign chosen independently; without signs the node itself.

    A minus-plus sign (``mp``) has the opposite of the sign chosen for the plus-minus sign (``pm``) before it.
    """
    if isinstance(node, BracketGroup) and node.open in ("(", "["):
        parts = [expand_signs(item) for item in node.items]
        if not 1 < prod(map(len, parts)) <= MAX_EXPANSION:
            return [node]
        return [BracketGroup(node.open, node.close, choice) for choice in product(*parts)]
    count = max(sum(isinstance(part, Apply) and part.op == "pm" for part in walk(node)), 1)
    if not has_signs(node) or 2**count > MAX_EXPANSION:
        return [node]
    return [_signed(node, choice) for choice in product((1, -1), repeat=count)]


def _signed(node: Node, choice: tuple[int, ...]) -> Node:
    """Return the node with each plus-minus sign replaced by the sign chosen for it."""
    signs, last = iter(choice), choice[0]

    def change(part: Node) -> Node | None:
        nonlocal last
        if not isinstance(part, Apply) or part.op not in ("pm", "mp"):
            return None
        last = next(signs, last) if part.op == "pm" else last
        plus = (last > 0) is (part.op == "pm")
        one, other = (rebuild(arg, change) for arg in part.args)
        term = other if plus else Apply("neg", (other,))
        return term if isinstance(one, Num) and one.value == 0 else Apply("add", (one, term))

    return rebuild(node, change)


def has_signs(node: Node) -> bool:
    """Return whether the node contains a plus-minus sign."""
    return any(isinstance(part, Apply) and part.op in ("pm", "mp") for part in walk(node))


def as_sequence(node: Node) -> tuple[Node, ...] | None:
    """Return the entries of a tuple, of a row or column, or of a bracketed list; ``None`` for other nodes."""
    match node:
        case Matrix(rows=(row,)):
            return row
        case Matrix(rows=rows) if all(len(row) == 1 for row in rows):
            return tuple(entry for (entry,) in rows)
        case BracketGroup(open="(" | "[" | "<", items=items):
            return items
    return None


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


AXES = frozenset({Sym("x"), Sym("y"), Sym("z")})
"""Labels that are coordinates."""


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


MAX_PRODUCT = 64
"""Largest number of entries of a product of two matrices that is computed."""


def components(node: Node) -> tuple[Node, ...] | None:
    """Return the entries of a vector or matrix expression as separate expressions; ``None`` for other expressions.

    ``c (1, 2) + (3, 4)`` has the entries ``c 1 + 3`` and ``c 2 + 4``. Products of matrices are computed; products of
    two vectors are not supported.
    """
    match node:
        case Matrix() | BracketGroup(open="(" | "<" | "["):
            return children(node)
        case Apply(op="add", args=args):
            vectors = [part for arg in args if (part := components(arg)) is not None]
            if len(vectors) != len(args) or len({len(vector) for vector in vectors}) != 1:
                return None
            return tuple(Apply("add", column) for column in zip(*vectors, strict=True))
        case Apply(op="mul", args=(Matrix(rows=left), Matrix(rows=right))) if (
            len(left[0]) == len(right) and len(left) * len(right[0]) <= MAX_PRODUCT
        ):
            pairs = [zip(row, column, strict=True) for row in left for column in zip(*right, strict=True)]
            return tuple(Apply("add", tuple(Apply("mul", pair) for pair in terms)) for terms in pairs)
        case Apply(op="neg" | "mul" | "div" as op, args=args):
            found = [(at, entries) for at, arg in enumerate(args) if (entries := components(arg)) is not None]
            if len(found) != 1 or (op == "div" and found[0][0] == 1):
                return None
            ((at, entries),) = found
            return tuple(Apply(op, (*args[:at], entry, *args[at + 1 :])) for entry in entries)
        case _:
            return None


_AXES = (("hat i", "hat j", "hat k"), ("#i", "j", "k"))


def along_axes(node: Node, length: int) -> tuple[Node, ...] | None:
    """Return the entries of a sum of multiples of unit vectors, such as ``2 i - j + 3 k``; ``None`` for other nodes.

    Args:
        node: The expression.
        length: Expected number of entries.
    """
    names = set(map(_axis_name, walk(node)))
    axes = next((axes[:length] for axes in _AXES if names.intersection(axes[1:])), None)
    if axes is None or not 2 <= length <= 3:
        return None
    terms = node.args if isinstance(node, Apply) and node.op == "add" else (node,)

    def along(axis: str) -> Node:
        values = {name: Num(Fraction(name == axis)) for name in axes}
        return rebuild(node, lambda part: values.get(_axis_name(part)))

    if any(sum(name in axes for name in map(_axis_name, walk(term))) != 1 for term in terms):
        return None
    return tuple(map(along, axes))


def _axis_name(node: Node) -> str:
    return "#i" if node == Const("i") else node.name if isinstance(node, Sym) else ""


def with_identity(node: Node, other: Node) -> Node:
    """Replace ``I`` and ``I_n`` in a node by the identity matrix if the other node has a square matrix (of size n)."""
    grids = [part.rows for part in walk(other) if isinstance(part, Matrix) and len(part.rows) == len(part.rows[0]) > 1]
    if not grids or any(isinstance(part, Matrix) for part in walk(node)):
        return node
    size = len(grids[0])
    rows = tuple(tuple(Num(Fraction(row == column)) for column in range(size)) for row in range(size))
    return replace_symbols(node, dict.fromkeys(("I", f"I_{size}"), Matrix(rows)))
