r"""The part of the parser for brackets: values, tuples, intervals, sets, absolute values, matrices and layouts."""

from __future__ import annotations

from abc import ABC, abstractmethod

from rstar2_env.verification.read import names
from rstar2_env.verification.read.cursor import END, Cursor
from rstar2_env.verification.read.lexer import ReadError
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


class Brackets(Cursor, ABC):
    """The part of the parser for brackets, bars and LaTeX environments."""

    @abstractmethod
    def items(self, closers: tuple[str, ...] | None) -> Node:
        """Read items up to one of the brackets ``closers``, or up to the end; implemented by ``parser.Reader``."""

    @abstractmethod
    def item_list(self, closers: tuple[str, ...] | None, separators: set[str]) -> list[Node]:
        """Read items, and add the separators between them to ``separators``; implemented by ``parser.Reader``."""

    @abstractmethod
    def item(self) -> Node:
        """Read one item of a list; implemented by ``parser.Reader``."""

    @abstractmethod
    def chain(self) -> Node:
        """Read a chain of relations, such as ``a < b = c``; implemented by ``parser.Reader``."""

    @abstractmethod
    def atom(self) -> Node:
        """Read an atom: a number, a name or a bracket."""

    def fresh(self, closers: tuple[str, ...]) -> Node:
        """Read the items of a bracket; bars, rows and integrals that began before the bracket cannot end inside it."""
        saved = self.open_bars, self.rows, self.no_colon, self.no_mid, self.integral
        self.open_bars, self.rows, self.no_colon, self.no_mid, self.integral = 0, 0, False, False, False
        node = self.items(closers)
        self.open_bars, self.rows, self.no_colon, self.no_mid, self.integral = saved
        return node

    def bracket(self, opening: str) -> Node:
        """Read the content of an opened bracket: a value, a tuple, an interval or a set."""
        if opening not in _CLOSERS:
            raise ReadError(f"the bracket {opening!r} is not supported")
        if opening in ("\\{", "{") and (builder := self._set_builder(opening)) is not None:
            return builder
        if self.take("close", *_CLOSERS[opening]):
            if opening == "\\{":
                return Const("empty")
            if opening == "{":  # "{}" only separates
                return self.atom() if self.starts_factor() else ONE
            raise ReadError("a bracket is empty")
        node = self.fresh(_CLOSERS[opening])
        closing = self.close(_CLOSERS[opening])
        if opening in ("floor", "ceil"):
            return Apply(opening, (node,))
        several = node.items if isinstance(node, BracketGroup) and not node.open else None
        if opening == "\\{" or (opening == "{" and several is not None):
            return BracketGroup("\\{", "\\}", (node,) if several is None else several)
        if opening == "<" or several is not None:
            return BracketGroup(opening, closing, (node,) if several is None else several)
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
            elif depth == 0 and (token.kind in ("mid", "colon") or token.text == "|"):
                break
        else:
            return None
        start = self.at
        saved = self.no_colon, self.no_mid
        self.no_colon = self.no_mid = True
        try:
            head = self.chain()
            if self.next().kind not in ("mid", "colon", "bar"):
                raise ReadError("no condition")
            self.no_colon = self.no_mid = False
            separators: set[str] = set()
            conditions = self.item_list(_CLOSERS[opening], separators)
            if "or" in separators:
                conditions = [BracketGroup("", "or", tuple(conditions))]
            self.close(_CLOSERS[opening])
        except ReadError:
            self.at = start
            return None
        finally:
            self.no_colon, self.no_mid = saved
        return Builder(head, tuple(conditions))

    def bars(self, bar: str) -> Node:
        """Read an absolute value or a norm, after its first bar was consumed."""
        self.open_bars += 1
        node = self.items((bar,))
        self.close((bar,))
        self.open_bars -= 1
        return Apply("abs" if bar == "|" else "norm", (node,))

    def environment(self, name: str) -> Node:
        """Read a LaTeX environment: a matrix, or the lines of a layout such as ``cases`` or ``aligned``."""
        matrix = name in names.MATRIX_ENVIRONMENTS
        if not matrix and name not in names.LAYOUT_ENVIRONMENTS:
            raise ReadError(f"the LaTeX environment {name!r} is not supported")
        rows: list[list[Node]] = [[]]
        saved = self.open_bars, self.rows
        self.open_bars, self.rows = 0, 1
        while self.peek() is not END and not self.is_next("end"):
            if self.take("row"):
                rows.append([])
            elif not (self.take("amp") or (not matrix and self.take("sep"))):
                rows[-1].append(self.chain() if matrix else self.item())
        self.close((name,))
        self.open_bars, self.rows = saved
        rows = [row for row in rows if row]
        if not rows:
            raise ReadError("a LaTeX environment is empty")
        if not matrix:
            entries = tuple(row[0] if len(row) == 1 else BracketGroup("row", "row", tuple(row)) for row in rows)
            return BracketGroup("cases", "cases", entries) if name == "cases" else BracketGroup("", "", entries)
        if len({len(row) for row in rows}) != 1:
            raise ReadError("the rows of a matrix have different lengths")
        grid = Matrix(tuple(tuple(row) for row in rows))
        return Apply("det", (grid,)) if name == "vmatrix" else grid
