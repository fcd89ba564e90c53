r"""Read brackets of every kind: tuples, sets, set-builder notation, bars, matrices and other environments."""

from __future__ import annotations

from rstar2_env.verification.read import names
from rstar2_env.verification.read.cursor import Cursor
from rstar2_env.verification.read.lexer import ReadError, Token
from rstar2_env.verification.read.nodes import ONE, Apply, BracketGroup, Builder, Const, Matrix, Node

_CLOSERS = {
    "(": (")", "]"),
    "[": ("]", ")"),
    "{": ("}",),
    "\\{": ("\\}", "}"),
    "<": (">",),
    "floor": ("floor",),
    "ceil": ("ceil",),
}


class BracketReader(Cursor):
    """The part of the grammar between brackets."""

    def bracket(self, token: Token) -> Node:
        """Read the content of a bracket that has been opened: a value, a tuple, an interval, a set."""
        opening = token.text
        if opening not in _CLOSERS:
            raise ReadError(f"cannot read {opening!r}")
        if opening in ("\\{", "{") and (builder := self._set_builder(opening)) is not None:
            return builder
        after = self.peek()
        if after is not None and after.kind == "close" and after.text in _CLOSERS[opening]:
            self.next()
            if opening == "\\{":
                return Const("empty")
            if opening == "{":  # "{}" only separates
                return self.atom() if self.peek() is not None and self.starts_factor() else ONE
            raise ReadError("an empty bracket")
        node = self.fresh(_CLOSERS[opening])
        closing = self.close(_CLOSERS[opening])
        if opening in ("floor", "ceil"):
            return Apply(opening, (node,))
        several = isinstance(node, BracketGroup) and not node.open
        if opening == "{":
            return BracketGroup("\\{", "\\}", node.items) if several and isinstance(node, BracketGroup) else node
        if opening == "\\{":
            return BracketGroup("\\{", "\\}", node.items if several and isinstance(node, BracketGroup) else (node,))
        if opening == "<" or several:
            return BracketGroup(opening, closing, node.items if several and isinstance(node, BracketGroup) else (node,))
        return node

    def _set_builder(self, opening: str) -> Node | None:
        """Read ``{head | condition}``, or return ``None`` and leave the cursor where it was."""
        depth = 0
        for token in self.tokens[self.at :]:
            if token.kind == "open":
                depth += 1
            elif token.kind == "close":
                depth -= 1
                if depth < 0:
                    return None
            elif (depth == 0 and token.kind in ("mid", "colon")) or (depth == 0 and token.text == "|"):
                break
        else:
            return None
        start = self.at
        saved = self.no_colon, self.no_mid
        self.no_colon = self.no_mid = True
        try:
            head = self.chain()
            token = self.next()
            if token.kind not in ("mid", "colon", "bar"):
                raise ReadError("no condition")
            self.no_colon = self.no_mid = False
            conditions = self.item_list(_CLOSERS[opening])
            self.close(_CLOSERS[opening])
        except ReadError:
            self.at = start
            return None
        finally:
            self.no_colon, self.no_mid = saved
        return Builder(head, tuple(conditions))

    def bars(self, token: Token) -> Node:
        """Read an absolute value or a norm whose first bar has been consumed."""
        self.open_bars += 1
        node = self.items((token.text,))
        self.close((token.text,))
        self.open_bars -= 1
        return Apply("abs" if token.text == "|" else "norm", (node,))

    def environment(self, name: str) -> Node:
        """Read a matrix, or the lines of a layout."""
        matrix = name in names.MATRIX_ENVIRONMENTS
        if not matrix and name not in names.LAYOUT_ENVIRONMENTS:
            raise ReadError(f"unknown environment {name}")
        rows: list[list[Node]] = [[]]
        saved = self.open_bars, self.rows
        self.open_bars, self.rows = 0, 1
        while (token := self.peek()) is not None and token.kind != "end":
            if token.kind == "row":
                self.next()
                rows.append([])
            elif token.kind == "amp" or (token.kind == "sep" and not matrix):
                self.next()
            else:
                rows[-1].append(self.chain() if matrix else self.item())
        self.close((name,))
        self.open_bars, self.rows = saved
        rows = [row for row in rows if row]
        if not rows:
            raise ReadError("an empty environment")
        if not matrix:
            entries = tuple(row[0] if len(row) == 1 else BracketGroup("row", "row", tuple(row)) for row in rows)
            return BracketGroup("cases", "cases", entries) if name == "cases" else BracketGroup("", "", entries)
        if len({len(row) for row in rows}) != 1:
            raise ReadError("rows of different lengths")
        grid = Matrix(tuple(tuple(row) for row in rows))
        return Apply("det", (grid,)) if name == "vmatrix" else grid
