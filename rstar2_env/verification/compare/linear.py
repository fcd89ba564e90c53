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
    rebuild,
    replace_symbols,
    walk,
)


def components(node: Node) -> tuple[Node, ...] | None:
    """Return the entries of a vector or matrix expression as separate expressions; ``None`` for other expressions.

    ``c (1, 2) + (3, 4)`` has the entries ``c 1 + 3`` and ``c 2 + 4``. Products of matrices are computed; products of
    two vectors are not supported.
    """
    match node:
        case Matrix(rows=rows):
            return tuple(entry for row in rows for entry in row)
        case BracketGroup(open="(" | "<" | "[", items=items):
            return items
        case Apply(op="neg", args=(inner,)):
            entries = components(inner)
            return None if entries is None else tuple(Apply("neg", (entry,)) for entry in entries)
        case Apply(op="add", args=args):
            parts = [components(arg) for arg in args]
            vectors = [part for part in parts if part is not None]
            if len(vectors) != len(parts) or len({len(vector) for vector in vectors}) != 1:
                return None
            return tuple(Apply("add", column) for column in zip(*vectors, strict=True))
        case Apply(op="mul", args=args) if (result := _matrix_product(args)) is not None:
            return components(result)
        case Apply(op="mul", args=args):
            found = [index for index, arg in enumerate(args) if components(arg) is not None]
            if len(found) != 1:
                return None
            at = found[0]
            entries = components(args[at])
            scalars = args[:at] + args[at + 1 :]
            return None if entries is None else tuple(Apply("mul", (*scalars, entry)) for entry in entries)
        case Apply(op="div", args=(top, bottom)):
            entries = components(top)
            return None if entries is None else tuple(Apply("div", (entry, bottom)) for entry in entries)
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


def _matrix_product(args: tuple[Node, ...]) -> Matrix | None:
    """Return the product of two small matrices of matching shapes; ``None`` for other arguments."""
    match args:
        case (Matrix(rows=left), Matrix(rows=right)) if len(left[0]) == len(right) and len(left) * len(right[0]) <= 64:
            columns = list(zip(*right, strict=True))
            return Matrix(tuple(tuple(_dot(row, column) for column in columns) for row in left))
        case _:
            return None


def _dot(row: tuple[Node, ...], column: tuple[Node, ...]) -> Node:
    terms = tuple(Apply("mul", (one, other)) for one, other in zip(row, column, strict=True))
    return terms[0] if len(terms) == 1 else Apply("add", terms)
