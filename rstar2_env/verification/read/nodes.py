"""The tree of a parsed answer: structures, with expressions as their parts.

Covered: the node classes and the properties of a tree that need no evaluation (its symbols, its canonical key). Not
covered: how text becomes a tree (``parser``), values (``evaluate``), and equality (``compare``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from operator import attrgetter
from typing import Any


@dataclass(frozen=True, slots=True)
class Num:
    """A rational number; ``decimals`` is the number of digits after the decimal point, ``None`` without a point."""

    value: Fraction
    decimals: int | None = None


@dataclass(frozen=True, slots=True)
class Sym:
    """A variable, with its subscript and accents in the name."""

    name: str


@dataclass(frozen=True, slots=True)
class Const:
    """A constant (``pi``, ``e``, ``i``, ``oo`` for infinity), a set of numbers (``R``, ``Z``, …), or ``empty``."""

    name: str


@dataclass(frozen=True, slots=True)
class Apply:
    """An operation on arguments (``add mul neg div pow root abs fact sin log …``), or an unknown function."""

    op: str
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Big:
    """A sum, product, integral or limit: ``kind``, bound variable, lower and upper bound (or ``None``), body."""

    kind: str
    variable: str
    lower: Node | None
    upper: Node | None
    body: Node


@dataclass(frozen=True, slots=True)
class BracketGroup:
    """Items between brackets; a list without brackets has empty ``open`` and ``close``."""

    open: str
    close: str
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix, as rows of entries."""

    rows: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """A chain of relations such as ``a < b <= c``: the sides, and the operators between them."""

    ops: tuple[str, ...]
    sides: tuple[Node, ...]


INEQUALITIES = frozenset({"<", "<=", ">", ">=", "!="})
"""The operators of a relation that are inequalities."""


@dataclass(frozen=True, slots=True)
class Builder:
    """A set that is defined by a condition: ``{head | condition}``."""

    head: Node
    conditions: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Words:
    """Plain words, in a normalised spelling."""

    text: str


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with its unit as written: ``%``, a currency, ``cm^2``, or words for the counted objects."""

    value: Node
    unit: str


@dataclass(frozen=True, slots=True)
class Given:
    """A value or relation, with the condition or remark that follows it."""

    body: Node
    condition: str


Node = Num | Sym | Const | Apply | Big | BracketGroup | Matrix | Relation | Builder | Words | Quantity | Given

ZERO = Num(Fraction(0))
ONE = Num(Fraction(1))

_COMMUTATIVE = frozenset({"add", "mul", "union", "inter", "gcd", "lcm", "max", "min"})


def whole(node: Node) -> int | None:
    """Return the value of a node that is a whole number without a decimal point; ``None`` for other nodes."""
    if isinstance(node, Apply) and node.op == "neg":
        inner = whole(node.args[0])
        return None if inner is None else -inner
    is_whole = isinstance(node, Num) and node.decimals is None and node.value.denominator == 1
    return node.value.numerator if isinstance(node, Num) and is_whole else None


def is_braced(node: Node) -> bool:
    """Return whether a node is a list in braces, such as {1, 2}."""
    return isinstance(node, BracketGroup) and node.open == "\\{"


def is_interval(node: Node) -> bool:
    """Return whether a node is a pair in round or square brackets, or a union of such pairs."""
    if isinstance(node, Apply) and node.op == "union":
        return all(map(is_interval, node.args))
    return isinstance(node, BracketGroup) and node.open in ("(", "[") and len(node.items) == 2


def negative(node: Node) -> Node:
    """Return a node with the opposite sign."""
    if isinstance(node, Num):
        return Num(-node.value, node.decimals)
    if isinstance(node, Quantity):
        return Quantity(negative(node.value), node.unit)
    if isinstance(node, Given):
        return Given(negative(node.body), node.condition)
    return Apply("neg", (node,))


_CHILDREN: Mapping[type[Node], Callable[[Any], tuple[Node, ...]]] = {
    **dict.fromkeys((Num, Sym, Const, Words), lambda node: ()),
    Apply: attrgetter("args"),
    BracketGroup: attrgetter("items"),
    Relation: attrgetter("sides"),
    Big: lambda node: tuple(part for part in (node.lower, node.upper, node.body) if part is not None),
    Matrix: lambda node: tuple(entry for row in node.rows for entry in row),
    Builder: lambda node: (node.head, *node.conditions),
    Quantity: lambda node: (node.value,),
    Given: lambda node: (node.body,),
}
"""For each kind of node, a function that returns the nodes directly below it; a ``match`` statement is half as fast."""


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly below a node."""
    return _CHILDREN[type(node)](node)


def walk(node: Node) -> Iterator[Node]:
    """Iterate over all nodes of a tree, each node before its children."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        if below := children(top):
            stack.extend(reversed(below))


def symbols(node: Node) -> frozenset[str]:
    """Return the names of the free variables in a tree."""
    if isinstance(node, Sym):
        return frozenset((node.name,))
    below = children(node)
    if not below:
        return frozenset()
    free: frozenset[str] = frozenset().union(*map(symbols, below))
    return free - {node.variable} if isinstance(node, Big) else free


def rebuild(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """Return a copy of a tree with some nodes replaced.

    Args:
        node: The tree.
        change: Returns the replacement of a node, or ``None`` to keep it; not called on nodes below a replacement.
    """
    new = change(node)
    if new is not None:
        return new
    if not children(node):
        return node
    fields: list[Any] = [_rebuilt(getattr(node, name), change) for name in node.__slots__]
    return type(node)(*fields)


def _rebuilt(value: Any, change: Callable[[Node], Node | None]) -> Any:
    """Return a field of a node, with ``rebuild`` applied to each node in the field."""
    if isinstance(value, tuple):
        return tuple(_rebuilt(part, change) for part in value)
    return value if value is None or isinstance(value, str) else rebuild(value, change)


def replace_symbols(node: Node, values: Mapping[str, Node]) -> Node:
    """Return a copy with expressions in place of variables.

    Args:
        node: The tree.
        values: The expression for each variable to replace, by the variable's name.
    """
    return rebuild(node, lambda part: values.get(part.name) if isinstance(part, Sym) else None)


def rename(node: Node, names: Mapping[str, str]) -> Node:
    """Return a copy with variables renamed; ``names`` maps the old names to the new ones."""
    return replace_symbols(node, {old: Sym(new) for old, new in names.items()})


def key(node: Node) -> str:
    """Return a canonical text of a tree; equal texts mean equal trees, up to the order in sums, products and unions."""
    match node:
        case Num(value=value):
            return str(value)
        case Sym(name=name):
            return f"'{name}'"
        case Const(name=name):
            return f"#{name}"
        case Apply(op=op, args=args):
            keys = [key(arg) for arg in _flat(op, args)]
            if op in _COMMUTATIVE:
                keys.sort()
            return f"{op}({','.join(keys)})"
        case Big(kind=kind, variable=variable, lower=lower, upper=upper, body=body):
            # The bound variable's name does not matter; this one cannot occur in any text.
            inner = key(rename(body, {variable: "\0"}))
            bounds = ";".join("" if bound is None else key(bound) for bound in (lower, upper))
            return f"{kind}[{bounds}]({inner})"
        case BracketGroup(open=opening, close=closing, items=items):
            return f"{opening or '<'}{','.join(map(key, items))}{closing or '>'}"
        case Matrix(rows=rows):
            return "matrix" + ";".join(",".join(map(key, row)) for row in rows)
        case Relation(ops=ops, sides=sides):
            return key(sides[0]) + "".join(f" {op} {key(side)}" for op, side in zip(ops, sides[1:], strict=True))
        case Builder(head=head, conditions=conditions):
            return f"{{{key(head)}|{','.join(map(key, conditions))}}}"
        case Words(text=text):
            return f'"{text}"'
        case Quantity(value=inner, unit=unit):
            return f"{key(inner)}~{unit}"
        case Given(body=inner, condition=condition):
            return f"{key(inner)} given {condition}"


def _flat(op: str, args: tuple[Node, ...]) -> Iterator[Node]:
    """Iterate over the terms of nested sums or products."""
    for arg in args:
        if op in ("add", "mul") and isinstance(arg, Apply) and arg.op == op:
            yield from _flat(op, arg.args)
        else:
            yield arg
