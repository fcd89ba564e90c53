"""``Cursor``: a position in a sequence of tokens, which looks ahead, consumes tokens, and tests what begins there."""

from __future__ import annotations

from rstar2_env.verification.read.lexer import ReadError, Token

END = Token("", "")
"""The token that marks the end of the text."""

_STARTS = frozenset(
    {"num", "let", "const", "fn", "open", "cmd", "big", "accent", "minmax", "money", "begin", "dots", "bar"}
)


class Cursor:
    """A position in a sequence of tokens, with the bars, rows and integrals that are open there.

    Args:
        tokens: The lexer's tokens.
        tight_division: Whether ``1/2x`` means ``1/(2x)``; see ``parser.read``.
    """

    def __init__(self, tokens: list[Token], *, tight_division: bool) -> None:
        self.tokens = [*_without_stops(tokens), END, END, END]
        self.at = 0
        self.tight_division = tight_division
        self.open_bars = 0
        self.rows = 0
        self.no_colon = False
        self.no_mid = False
        self.integral = False

    def peek(self, ahead: int = 0) -> Token:
        """Return the next token, or the one ``ahead`` (at most two) places after it; ``END`` after the last token."""
        return self.tokens[self.at + ahead]

    def is_next(self, kind: str, *texts: str, ahead: int = 0) -> bool:
        """Return whether a token is of a kind, and is one of ``texts`` if any are given.

        Args:
            kind: The kind of token.
            *texts: Allowed texts of the token; none allows every text.
            ahead: 0 for the next token, 1 for the token after it.
        """
        token = self.tokens[self.at + ahead]
        return token.kind == kind and (not texts or token.text in texts)

    def take(self, kind: str, *texts: str) -> Token | None:
        """Consume and return the next token if ``is_next`` holds for it; otherwise return ``None``."""
        token = self.tokens[self.at]
        if token.kind != kind or (texts and token.text not in texts):
            return None
        self.at += 1
        return token

    def next(self) -> Token:
        """Consume and return the next token.

        Raises:
            ReadError: No token is left.
        """
        token = self.peek()
        if token is END:
            raise ReadError("the answer ends too early")
        self.at += 1
        return token

    def close(self, closers: tuple[str, ...]) -> str:
        """Consume and return the closing bracket that must come next.

        Raises:
            ReadError: The next token is not one of ``closers``.
        """
        token = self.next()
        if token.text not in closers:
            raise ReadError(f"expected {' or '.join(closers)}, found {token.text!r}")
        return token.text

    def raw_script(self) -> str:
        """Consume a subscript and return it as text, without spaces and braces."""
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

    def starts_factor(self) -> bool:
        """Return whether the next token can begin a factor, which multiplies the factor before it."""
        token = self.peek()
        if token.kind not in _STARTS:
            return False
        if token.kind == "bar":
            return self.open_bars == 0 and not self.no_mid
        if token.kind == "num":
            # "3 4" is not a product; "x 2" and "(1) 2" are.
            return self.at == 0 or self.tokens[self.at - 1].kind != "num"
        return not (self.integral and self.at_differential())

    def at_differential(self) -> bool:
        """Return whether the next tokens are the differential of an integral, such as ``dx``."""
        return self.is_next("let", "d") and self.is_next("let", ahead=1)


def _without_stops(tokens: list[Token]) -> list[Token]:
    """Drop punctuation that ends a sentence or quotes a word; punctuation inside an answer makes it prose."""
    kept: list[Token] = []
    for index, token in enumerate(tokens):
        if token.kind == "stop":
            after = tokens[index + 1].kind if index + 1 < len(tokens) else "end"
            if token.text not in "\"`'" and after not in ("stop", "close", "sep", "end", "row"):
                raise ReadError("the answer has several sentences")
        elif token.kind != "skip":
            kept.append(token)
    return kept
