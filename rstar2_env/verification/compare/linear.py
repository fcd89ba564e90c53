"""Splits sums and multiples of vectors and matrices into the expressions of their entries."""

from __future__ import annotations

from fractions import Fraction

from rstar2_env.verification.read.nodes import (
    Apply,
    BracketGroup,
    Const,
    Matrix,
    Node,
    Num,
    Sym,
    children,
    rebuild,
    replace_symbols,
    walk,
)

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
            return tuple(_dot(row, column) for row in left for column in zip(*right, strict=True))
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

    def along(part: Node, axis: str) -> Node:
        def change(inner: Node) -> Node | None:
            name = _axis_name(inner)
            return Num(Fraction(name == axis)) if name in axes else None

        return rebuild(part, change)

    if any(sum(name in axes for name in map(_axis_name, walk(term))) != 1 for term in terms):
        return None
    return tuple(along(node, axis) for axis in axes)


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


def _dot(row: tuple[Node, ...], column: tuple[Node, ...]) -> Node:
    terms = tuple(Apply("mul", (one, other)) for one, other in zip(row, column, strict=True))
    return terms[0] if len(terms) == 1 else Apply("add", terms)
