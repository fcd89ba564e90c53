"""A cursor over tokens, for every level of the grammar: look ahead, consume a token, enter a bracket."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction

from rstar2_env.verification.read.lexer import ReadError, Token
from rstar2_env.verification.read.nodes import Apply, Node, Num

_STARTS = frozenset(
    {"num", "let", "const", "fn", "open", "cmd", "big", "accent", "minmax", "money", "begin", "dots", "bar"}
)


class Cursor(ABC):
    """A position in a sequence of tokens, with the bars, rows and integrals that are open there.

    Args:
        tokens: The lexer's tokens.
        tight_division: See ``parser.read``.
    """

    def __init__(self, tokens: list[Token], *, tight_division: bool) -> None:
        self.tokens = _without_stops(tokens)
        self.at = 0
        self.tight_division = tight_division
        self.open_bars = 0
        self.rows = 0
        self.no_colon = False
        self.no_mid = False
        self.integral = False

    # Levels of the grammar that subclasses implement.
    @abstractmethod
    def items(self, closers: tuple[str, ...] | None) -> Node:
        """Read a list of items."""

    @abstractmethod
    def item_list(self, closers: tuple[str, ...] | None, separators: set[str] | None = None) -> list[Node]:
        """Read the items of a list."""

    @abstractmethod
    def item(self) -> Node:
        """Read one item with its condition."""

    @abstractmethod
    def chain(self) -> Node:
        """Read a chain of relations."""

    @abstractmethod
    def sum(self) -> Node:
        """Read a sum."""

    @abstractmethod
    def term(self) -> Node:
        """Read a product."""

    @abstractmethod
    def factor(self) -> Node:
        """Read a factor."""

    @abstractmethod
    def postfix(self, node: Node) -> Node:
        """Read what is attached to an atom."""

    @abstractmethod
    def atom(self) -> Node:
        """Read an atom."""

    @abstractmethod
    def power(self, base: Node) -> Node:
        """Read an exponent whose ``^`` has been consumed."""

    def peek(self, ahead: int = 0) -> Token | None:
        """The next token (or the one ``ahead`` places after it), not consumed; ``None`` at the end."""
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else None

    def next(self) -> Token:
        """Consume the next token and return it."""
        token = self.peek()
        if token is None:
            raise ReadError("the text ends too early")
        self.at += 1
        return token

    def starts_factor(self) -> bool:
        """Whether the next token can begin a factor, so that a factor before it is multiplied by it."""
        token = self.peek()
        if token is None or token.kind not in _STARTS:
            return False
        if token.kind == "bar":
            return self.open_bars == 0 and not self.no_mid
        if token.kind == "num":
            before = self.tokens[self.at - 1] if self.at else None
            # "3 4" is not a product; "x 2" and "(1) 2" are.
            return before is None or before.kind != "num"
        return not (self.integral and self.at_differential())

    def close(self, closers: tuple[str, ...]) -> str:
        """Consume the closing bracket that is required here."""
        token = self.next()
        if token.text not in closers:
            raise ReadError(f"expected one of {closers}, found {token.text!r}")
        return token.text

    def fresh(self, closers: tuple[str, ...]) -> Node:
        """Read the items of a bracket, in which no outer bar, row or integral counts as open."""
        saved = self.open_bars, self.rows, self.no_colon, self.no_mid, self.integral
        self.open_bars, self.rows, self.no_colon, self.no_mid, self.integral = 0, 0, False, False, False
        node = self.items(closers)
        self.open_bars, self.rows, self.no_colon, self.no_mid, self.integral = saved
        return node

    def raw_script(self) -> str:
        """A subscript as text, without spaces and braces."""
        token = self.next()
        if token.kind != "open":
            return token.text
        depth, parts = 1, []
        while depth:
            inner = self.next()
            depth += {"open": 1, "close": -1}.get(inner.kind, 0)
            if inner.kind not in ("open", "close"):
                parts.append(inner.text)
        return "".join(parts)

    def argument(self, *, split: bool = False) -> Node:
        r"""Read the argument of a command: a group, or one token. ``split`` takes one digit of ``\frac12``."""
        token = self.peek()
        if token is None:
            raise ReadError("an argument is missing")
        if token.kind == "open" and token.text == "{":
            self.next()
            node = self.fresh(("}",))
            self.close(("}",))
            return node
        if token.kind == "num" and split and len(token.text) > 1 and token.text.isdigit():
            # The token is split in place, so that reading it again gives the same result.
            self.tokens[self.at : self.at + 1] = [Token("num", token.text[0]), Token("num", token.text[1:])]
            token = self.tokens[self.at]
        if token.kind == "num":
            self.next()
            return Num(Fraction(token.text), len(token.text.split(".")[1]) if "." in token.text else None)
        if token.kind == "op" and token.text == "-":
            self.next()
            return Apply("neg", (self.argument(split=split),))
        return self.atom()

    def script(self) -> Node:
        """Read an exponent: a group, or a signed atom, as people write ``10^-3``."""
        token = self.peek()
        if token is not None and token.kind == "op" and token.text in ("-", "+"):
            self.next()
            inner = self.script()
            return Apply("neg", (inner,)) if token.text == "-" else inner
        node = self.argument()
        after = self.peek()
        if after is not None and after.kind == "op" and after.text == "^":  # a tower binds from the right
            self.next()
            return self.power(node)
        return node

    def at_differential(self) -> bool:
        """Whether the next tokens are the ``dx`` of an integral."""
        token, after = self.peek(), self.peek(1)
        return (
            token is not None
            and token.kind == "let"
            and token.text == "d"
            and after is not None
            and after.kind == "let"
        )


def _without_stops(tokens: list[Token]) -> list[Token]:
    """Drop punctuation that ends a sentence or quotes a word; punctuation inside an answer makes it prose."""
    kept: list[Token] = []
    for index, token in enumerate(tokens):
        if token.kind == "skip":
            continue
        if token.kind == "stop":
            after = tokens[index + 1] if index + 1 < len(tokens) else None
            if token.text in "\"`'" or after is None or after.kind in ("stop", "close", "sep", "end", "row"):
                continue
            raise ReadError("sentences")
        kept.append(token)
    return kept
