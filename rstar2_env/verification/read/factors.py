r"""Read factors: atoms with their powers, subscripts, factorials, degrees, percent, currency, units.

The lower half of the grammar; ``parser`` holds the upper half.
"""

from __future__ import annotations

from fractions import Fraction

from rstar2_env.verification.read import names
from rstar2_env.verification.read.applied import AppliedReader
from rstar2_env.verification.read.lexer import ReadError, Token
from rstar2_env.verification.read.nodes import Apply, Const, Node, Num, Quantity, Sym, Words

_ORDINALS = frozenset({"th", "st", "nd", "rd", "tanh"})  # a bare "th" reads as the hyperbolic tangent


class FactorReader(AppliedReader):
    """The part of the grammar below products."""

    def signed_factor(self) -> Node:
        """Read a factor that may have a sign, as after an operator."""
        token = self.peek()
        if token is not None and token.kind == "op" and token.text in ("+", "-"):
            self.next()
            factor = self.signed_factor()
            return Apply("neg", (factor,)) if token.text == "-" else factor
        return self.factor()

    def factor(self) -> Node:
        """Read an atom and what is attached to it: powers, subscripts, factorials, degrees, percent, currency."""
        return self.postfix(self.atom())

    def postfix(self, node: Node) -> Node:
        """Read what is attached to an atom."""
        while (token := self.peek()) is not None:
            if token.kind == "op" and token.text == "^":
                self.next()
                node = self.power(node)
            elif token.kind == "op" and token.text == "_":
                self.next()
                node = _subscript(node, self.raw_script())
            elif token.kind == "op" and token.text == "!":
                self.next()
                after = self.peek()
                if after is not None and after.kind == "op" and after.text == "!":
                    self.next()
                    node = Apply("fact2", (node,))
                else:
                    node = Apply("fact", (node,))
            elif token.kind == "prime" and isinstance(node, Sym | Const):
                self.next()
                node = Sym(node.name + "'")
            elif token.kind == "prime" and isinstance(node, Apply) and node.op == "deg":
                self.next()  # a stray minute mark
            elif token.kind == "deg":
                self.next()
                node = self._degrees(node)
            elif token.kind == "pct":
                self.next()
                node = Quantity(node, "%")
            elif token.kind == "money" and not isinstance(node, Quantity):
                self.next()
                node = Quantity(node, token.text)
            else:
                break
        return node

    def atom(self) -> Node:
        """Read an atom."""
        token = self.next()
        match token.kind:
            case "num":
                return self._number(token)
            case "let":
                return self._letter(token)
            case "const":
                return Const(token.text)
            case "dots":
                return Sym("...")
            case "cmd":
                return self.command(token.text)
            case "fn":
                return self.function(token.text)
            case "open":
                return self.bracket(token)
            case "bar":
                return self.bars(token)
            case "big":
                return self.big(token.text)
            case "accent":
                return self.accented(token.text)
            case "minmax":
                return self.min_max(token.text)
            case "money":
                return Quantity(self.factor(), token.text)
            case "begin":
                return self.environment(token.text)
            case "text":
                return self._words(token)
            case "op" if token.text == "-":
                return Apply("neg", (self.factor(),))
            case _:
                raise ReadError(f"expected a value, found {token.text!r}")

    def unit(self) -> str | None:
        """Read the unit or remark after a value, or ``None`` if the words there begin a condition."""
        token = self.peek()
        if token is None or token.kind != "text" or token.text.split()[0].lower() in names.UNIT_STOPS:
            return None
        parts: list[str] = []
        while (token := self.peek()) is not None:
            after = self.peek(1)
            if token.kind == "text":
                if token.text.split()[0].lower() in names.UNIT_STOPS:
                    break
                parts.append(self.next().text)
            elif token.kind == "let" and token.text == "a" and parts and after is not None and after.kind == "text":
                self.next()
                parts.append("per")  # "18 dollars a day"
            elif token.kind == "op" and token.text == "^" and parts:
                self.next()
                parts.append("^" + self.raw_script())
            elif token.kind == "op" and token.text in "/*-" and after is not None and after.kind == "text":
                parts.append(" " if self.next().text == "-" else token.text)
            elif token.kind == "op" and token.text == "/" and after is not None and after.kind == "let":
                parts.append(f"/{self.tokens[self.at + 1].text}")  # "km/h"
                self.at += 2
            else:
                break
        unit = " ".join(parts)
        return "%" if unit.lower() in names.PERCENT_WORDS else unit

    def _number(self, token: Token) -> Node:
        digits = token.text
        decimals = len(digits) - digits.index(".") - 1 if "." in digits else None
        number = Num(Fraction(digits), decimals)
        if decimals is None and (part := self._proper_fraction()) is not None:
            return Apply("mixed", (number, part))
        return number

    def _proper_fraction(self) -> Num | None:
        r"""The fraction of a mixed number such as ``6\frac{1}{64}`` or ``6 1/64``, if one stands here."""
        start = self.at
        token = self.peek()
        top: Node | None = None
        bottom: Node | None = None
        if token is not None and token.kind == "cmd" and token.text == "frac":
            self.next()
            top, bottom = self.argument(split=True), self.argument(split=True)
        elif token is not None and token.kind == "num" and token.spaced:
            slash, under = self.peek(1), self.peek(2)
            if slash is not None and slash.text == "/" and under is not None and under.kind == "num":
                top, bottom = Num(Fraction(token.text)), Num(Fraction(under.text))
                self.at += 3
        if (
            isinstance(top, Num)
            and isinstance(bottom, Num)
            and _whole(top)
            and _whole(bottom)
            and 0 < top.value < bottom.value
        ):
            return Num(top.value / bottom.value)
        self.at = start
        return None

    def _letter(self, token: Token) -> Node:
        name = token.text
        after = self.peek()
        if name in ("e", "i") and not (after is not None and after.kind == "op" and after.text == "_"):
            return Const(name)
        if after is not None and after.kind == "num" and not after.spaced and after.text.isdigit() and name.isalpha():
            self.next()  # "x1"
            return Sym(f"{name}_{after.text}")
        return Sym(name)

    def power(self, base: Node) -> Node:
        """Read an exponent; a degree sign, a prime and the "th" of an ordinal are not exponents."""
        token = self.peek()
        if token is None or token.kind in ("close", "sep", "row", "amp", "end"):
            return base  # a caret with nothing after it
        if token.kind == "deg":
            self.next()
            return self._degrees(base)
        if token.kind == "prime":
            self.next()
            return Sym(base.name + "'") if isinstance(base, Sym) else base
        if token.kind == "op" and token.text == "*":
            self.next()
            return Apply("conj", (base,))
        if token.kind == "open" and token.text == "{":
            inner = self.peek(1)
            closing = self.peek(2)
            if inner is not None and closing is not None and closing.kind == "close" and _is_mark(inner):
                self.at += 3
                if inner.kind == "deg":
                    return self._degrees(base)
                return Sym(base.name + "'") if inner.kind == "prime" and isinstance(base, Sym) else base
        if token.kind == "text" and token.text in _ORDINALS:
            self.next()
            return base
        return Apply("pow", (base, self.script()))

    def _degrees(self, node: Node) -> Node:
        token, after = self.peek(), self.peek(1)
        if token is not None and token.kind in ("let", "text") and token.text in ("C", "F"):
            self.next()
            return Quantity(node, f"deg{token.text}")
        if token is not None and token.kind == "num" and after is not None and after.kind == "prime":
            minutes = Fraction(self.next().text) / 60
            self.next()
            token, after = self.peek(), self.peek(1)
            if token is not None and token.kind == "num" and after is not None and after.kind == "prime":
                minutes += Fraction(self.next().text) / 3600
                while (token := self.peek()) is not None and token.kind == "prime":
                    self.next()
            return Apply("deg", (Apply("add", (node, Num(minutes))),))
        return Apply("deg", (node,))

    def _words(self, token: Token) -> Node:
        words = [token.text]
        while (token_after := self.peek()) is not None and token_after.kind == "text":
            words.append(self.next().text)
        return Words(" ".join(words))


def _is_mark(token: Token) -> bool:
    """Whether a superscript is not a power: a degree sign, a prime, the "th" of an ordinal."""
    return token.kind in ("deg", "prime") or (token.kind in ("text", "fn") and token.text in _ORDINALS)


def _whole(number: Num) -> bool:
    return number.decimals is None and number.value.denominator == 1


def _subscript(node: Node, text: str) -> Node:
    if isinstance(node, Num) and text.isdigit() and 2 <= int(text[:3]) <= 36:
        return Apply("base", (node, Num(Fraction(int(text)))))
    if isinstance(node, Sym | Const):
        return Sym(f"{node.name}_{text}")
    return Apply("sub", (node, Sym(text)))
