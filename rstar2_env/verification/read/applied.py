r"""Read everything that takes arguments: fractions, roots, functions, sums, integrals, limits, accents, extremes."""

from __future__ import annotations

from fractions import Fraction

from rstar2_env.verification.read import names
from rstar2_env.verification.read.brackets import BracketReader
from rstar2_env.verification.read.lexer import ReadError, Token
from rstar2_env.verification.read.nodes import (
    ONE,
    Apply,
    Big,
    BracketGroup,
    Const,
    Node,
    Num,
    Relation,
    Sym,
    Words,
    walk,
)

_INVERSES = frozenset({"sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh"})


class AppliedReader(BracketReader):
    """The part of the grammar where a name is followed by arguments."""

    def command(self, name: str) -> Node:
        """Read a fraction, a binomial or a root whose command has been consumed."""
        if name == "frac":
            return Apply("div", (self.argument(split=True), self.argument(split=True)))
        if name == "binom":
            return Apply("binom", (self.argument(split=True), self.argument(split=True)))
        token = self.peek()
        if token is not None and token.kind == "open" and token.text == "[":
            self.next()
            index = self.items(("]",))
            self.close(("]",))
            return Apply("root", (self.argument(), index))
        return Apply("root", (self.argument(), Num(Fraction(2))))

    def function(self, name: str) -> Node:
        """Read the power, base and argument of a function whose name has been consumed."""
        power: Node | None = None
        base: Node | None = None
        while (token := self.peek()) is not None and token.kind == "op" and token.text in ("^", "_"):
            self.next()
            if token.text == "^":
                power = self.script()
            else:
                base = self.argument()
        if isinstance(power, Num | Apply) and _is_minus_one(power) and name in _INVERSES:
            name, power = f"a{name}", None
        arguments = self._function_argument()
        node = Apply(name, (*arguments, base) if base is not None else arguments)
        return node if power is None else Apply("pow", (node, power))

    def _function_argument(self) -> tuple[Node, ...]:
        """Read the argument of a function: one bracket, or a product without brackets."""
        token = self.peek()
        if token is not None and token.kind == "open" and token.text in ("(", "[", "{", "\\{"):
            node = self.atom()
            if isinstance(node, BracketGroup):
                return node.items
            after = self.peek()
            if token.text == "{" and after is not None and after.kind == "op" and after.text == "^":
                node = self.postfix(node)
            return (node,)
        sign = token is not None and token.kind == "op" and token.text == "-"
        if sign:
            self.next()
        parts = [self.factor()]
        while (token := self.peek()) is not None and self.starts_factor() and self._continues_argument(token, parts):
            parts.append(self.factor())
        if token is not None and token.kind == "op" and token.text == "/" and _plain_angle(parts):
            after = self.peek(1)
            if after is not None and after.kind == "num":  # "sin pi/6"
                self.next()
                parts = [Apply("div", (_product(parts), self.factor()))]
        node = _product(parts)
        return (Apply("neg", (node,)) if sign else node,)

    def _continues_argument(self, token: Token, parts: list[Node]) -> bool:
        if token.kind == "let":
            return token.text != "e"
        if token.kind == "open":
            return all(isinstance(part, Num) for part in parts)
        return token.kind in ("num", "const", "cmd") and not isinstance(parts[-1], BracketGroup)

    def big(self, kind: str) -> Node:
        """Read a sum, product, integral or limit whose sign has been consumed."""
        lower: Node | None = None
        upper: Node | None = None
        while (token := self.peek()) is not None and token.kind == "op" and token.text in ("^", "_"):
            self.next()
            if token.text == "_":
                lower = self._script_relation()
            else:
                upper = self.script()
        variable = ""
        if isinstance(lower, Relation) and len(lower.sides) == 2 and isinstance(lower.sides[0], Sym | Const):
            variable, lower = lower.sides[0].name, lower.sides[1]
        if kind == "int":
            saved, self.integral = self.integral, True
            body = ONE if self.at_differential() else self.sum()
            self.integral = saved
            if self.at_differential():
                self.next()
                variable = self.next().text
            return Big(kind, variable, lower, upper, body)
        return Big(kind, variable, lower, upper, self.term())

    def _script_relation(self) -> Node:
        token = self.peek()
        if token is not None and token.kind == "open" and token.text == "{":
            self.next()
            node = self.fresh(("}",))
            self.close(("}",))
            return node
        return self.argument()

    def accented(self, accent: str) -> Node:
        """Read the argument of an accent, as one name."""
        if accent in ("overset", "underset"):
            mark, under = self.argument(), self.argument()
            if isinstance(under, Num) or any(isinstance(part, Num) for part in walk(mark)):
                raise ReadError("a number above or below another")
            return under
        token = self.peek()
        if token is not None and token.kind == "open":
            name = self.raw_script()
        else:
            letters: list[str] = []
            while (
                (token := self.peek()) is not None
                and token.kind == "let"
                and (accent in ("angle", "triangle") or not letters)
            ):
                letters.append(self.next().text)
            if not letters:
                letters.append(self.next().text)
            name = "".join(letters)
        if accent in names.PLAIN_ACCENTS:
            return Sym(name)
        return Sym(f"{accent} {name}")

    def min_max(self, name: str) -> Node:
        """Read the largest or smallest of some values; without a bracket, ``max`` and ``min`` are words."""
        token = self.peek()
        if token is not None and token.kind == "open" and token.text in ("(", "\\{", "{"):
            node = self.atom()
            items = node.items if isinstance(node, BracketGroup) else (node,)
            return Apply(name, items)
        if token is not None and token.kind == "op" and token.text == "_":
            self.next()
            self.raw_script()
        if (token := self.peek()) is not None and token.kind == "let":
            self.factor()  # "max f = 42": a label
        return Words(name)


def _is_minus_one(node: Node) -> bool:
    if isinstance(node, Apply):
        return node.op == "neg" and isinstance(node.args[0], Num) and node.args[0].value == 1
    return isinstance(node, Num) and node.value == -1


def _product(parts: list[Node]) -> Node:
    return parts[0] if len(parts) == 1 else Apply("mul", tuple(parts))


def _plain_angle(parts: list[Node]) -> bool:
    return any(isinstance(part, Const) and part.name == "pi" for part in parts) and all(
        isinstance(part, Num | Const) for part in parts
    )
