r"""The part of the parser that reads factors: commands, brackets, and atoms with their powers, subscripts and marks.

A bracket is read as a value, a tuple, an interval, a set, an absolute value, a matrix or a layout.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction

from rstar2_env.verification.read import names
from rstar2_env.verification.read.lexer import END, Cursor, ReadError, Token
from rstar2_env.verification.read.nodes import (
    ONE,
    ZERO,
    Apply,
    Big,
    BracketGroup,
    Builder,
    Const,
    Matrix,
    Node,
    Num,
    Quantity,
    Relation,
    Sym,
    Words,
    negative,
    walk,
    whole,
)

_CLOSERS = {
    "(": (")", "]"),
    "[": ("]", ")"),
    "{": ("}",),
    "\\{": ("\\}", "}"),
    "<": (">",),
    "floor": ("floor",),
    "ceil": ("ceil",),
}
_INVERSES = frozenset({"sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh"})
_TRANSPOSED = ("T", "\\top", "\\intercal")


class Factors(Cursor, ABC):
    """The part of the parser for a single factor of a product, with brackets, bars and LaTeX environments."""

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

    def group(self, closers: tuple[str, ...]) -> tuple[Node, str]:
        """Read the items of an opened bracket, and then the closing bracket.

        Bars, matrix rows and integrals that began before the bracket cannot end inside it.
        """
        saved = self.open_bars, self.rows, self.no_colon, self.no_mid, self.integral
        self.open_bars, self.rows, self.no_colon, self.no_mid, self.integral = 0, 0, False, False, False
        node = self.items(closers)
        self.open_bars, self.rows, self.no_colon, self.no_mid, self.integral = saved
        return node, self.close(closers)

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
        node, closing = self.group(_CLOSERS[opening])
        if opening in ("floor", "ceil"):
            return Apply(opening, (node,))
        several = isinstance(node, BracketGroup) and not node.open
        items = node.items if isinstance(node, BracketGroup) and several else (node,)
        if opening == "\\{" or (opening == "{" and several):
            return BracketGroup("\\{", "\\}", items)
        return BracketGroup(opening, closing, items) if opening == "<" or several else node

    def _set_builder(self, opening: str) -> Node | None:
        """Read ``{head | condition}``, or return ``None`` and leave the cursor where it was."""
        depth, marked = 0, False
        for token in self.tokens[self.at :]:
            depth += {"open": 1, "close": -1}.get(token.kind, 0)
            marked = depth == 0 and (token.kind in ("mid", "colon") or token.text == "|")
            if depth < 0 or marked:
                break
        if not marked:
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

    @abstractmethod
    def sum(self) -> Node:
        """Read a sum; implemented by ``parser.Reader``."""

    @abstractmethod
    def term(self) -> Node:
        """Read a product; implemented by ``parser.Reader``."""

    def signed(self, read: Callable[[], Node]) -> Node:
        """Read signs, if any, and then call ``read``; return the node that it reads, with the resulting sign."""
        if (sign := self.take("op", "+", "-")) is None:
            return read()
        inner = self.signed(read)
        return negative(inner) if sign.text == "-" else inner

    def factor(self) -> Node:
        """Read an atom with its powers, subscripts, factorials, degrees, percent sign and currency."""
        return self.postfix(self.atom())

    def postfix(self, node: Node) -> Node:
        """Read powers, subscripts, factorials, primes, degree and percent signs, and currencies after an atom."""
        while True:
            if self.take("op", "^"):
                node = self.power(node)
            elif self.take("op", "_"):
                node = _subscript(node, self.raw_script())
            elif self.take("op", "!"):
                node = Apply("fact2" if self.take("op", "!") else "fact", (node,))
            elif isinstance(node, Sym | Const) and self.take("prime"):
                node = Sym(node.name + "'")
            elif isinstance(node, Num) and self.take("prime"):
                node = Quantity(node, "''" if self.take("prime") else "'")  # 5' 10''
            elif self.take("deg"):
                node = self._degrees(node)
            elif self.take("pct"):
                node = Quantity(node, "%")
            elif not isinstance(node, Quantity | Words) and (currency := self.take("money")) is not None:
                node = Quantity(node, currency.text)
            else:
                return node

    def power(self, base: Node) -> Node:
        """Read an exponent, after its ``^`` was consumed, and apply it to ``base``."""
        if self.take("op", "*"):
            return Apply("conj", (base,))
        if isinstance(base, BracketGroup) and base.open in ("(", "[") and self._transposes():
            return Matrix(tuple((item,) for item in base.items))
        if isinstance(base, Matrix) and self._transposes():
            return Matrix(tuple(zip(*base.rows, strict=True)))
        return Apply("pow", (base, self.script()))

    def _transposes(self) -> bool:
        """Read the mark of a transpose, ``T`` or ``{T}`` after ``^``; return whether there is one."""
        braced = int(self.is_next("open", "{") and self.is_next("close", ahead=2))
        if self.peek(braced).text not in _TRANSPOSED:
            return False
        self.at += 1 + 2 * braced
        return True

    def _degrees(self, node: Node) -> Node:
        scale = self.take("let", "C", "F") or self.take("text", "C", "F")
        return Apply("deg", (node,)) if scale is None else Quantity(node, f"deg{scale.text}")

    def atom(self) -> Node:
        """Read an atom: a number, a name or a bracket."""
        token = self.next()
        if token.kind in _READERS:
            return _READERS[token.kind](self, token.text)
        match token.kind:
            case "num":
                return self._number(token)
            case "const":
                return Const(token.text)
            case "dots":
                return Sym("...")
            case "money":
                return Quantity(self.factor(), token.text)
            case "op" if token.text == "-":
                return Apply("neg", (self.factor(),))
            case _:
                raise ReadError(f"expected a value, found {token.text!r}")

    def _number(self, token: Token) -> Node:
        number = _as_number(token)
        if number.decimals is None and (part := self._proper_fraction()) is not None:
            return Apply("mixed", (number, part))
        return number

    def _proper_fraction(self) -> Num | None:
        r"""Read the fraction of a mixed number such as ``6\frac{1}{64}`` or ``6 1/64``; ``None`` if there is none."""
        start = self.at
        token, last = self.peek(), self.peek(2)
        top: Node = ZERO
        bottom: Node = ZERO
        if self.take("cmd", "frac"):
            top, bottom = self.argument(split=True), self.argument(split=True)
        elif token.kind == "num" and token.spaced and self.peek(1).text == "/" and last.kind == "num":
            top, bottom = Num(Fraction(token.text)), Num(Fraction(last.text))
            self.at += 3
        over, under = whole(top), whole(bottom)
        if over is not None and under is not None and 0 < over < under:
            return Num(Fraction(over, under))
        self.at = start
        return None

    def _letter(self, name: str) -> Node:
        after = self.peek()
        if name in ("e", "i") and not self.is_next("op", "_"):
            return Const(name)
        if after.kind == "num" and not after.spaced and after.text.isdigit() and name.isalpha():
            self.next()  # such as "x1"
            return Sym(f"{name}_{after.text}")
        return Sym(name)

    def _words(self, text: str) -> Node:
        words = [text]
        while (word := self.take("text")) is not None:
            words.append(word.text)
        return Words(" ".join(words))

    # Names that take arguments.

    def argument(self, *, split: bool = False) -> Node:
        r"""Read the argument of a command: a group or a token; if ``split``, only one digit, as in ``\frac12``."""
        if self.take("open", "{"):
            return self.group(("}",))[0]
        token = self.peek()
        if token is END:
            raise ReadError("a command has no argument")
        if token.kind == "num":
            if split and len(token.text) > 1 and token.text.isdigit():
                # The token is split in place, so that reading it again gives the same result.
                self.tokens[self.at : self.at + 1] = [Token("num", token.text[0]), Token("num", token.text[1:])]
            return _as_number(self.next())
        if self.take("op", "-"):
            return Apply("neg", (self.argument(split=split),))
        return self.atom()

    def script(self) -> Node:
        """Read an exponent: a group, or an atom with an optional sign, as in ``10^-3``."""
        return self.signed(self._tower)

    def _tower(self) -> Node:
        node = self.argument()
        return self.power(node) if self.take("op", "^") else node  # a tower binds from the right

    def _command(self, name: str) -> Node:
        """Read a fraction, a binomial coefficient or a root whose command has been consumed."""
        if name in ("frac", "binom"):
            top, bottom = self.argument(split=True), self.argument(split=True)
            return Apply("div" if name == "frac" else name, (top, bottom))
        if self.take("open", "["):
            index = self.items(("]",))
            self.close(("]",))
            return Apply("root", (self.argument(), index))
        return Apply("root", (self.argument(), Num(Fraction(2))))

    def _scripts(self) -> tuple[Node | None, Node | None]:
        """Read the subscript and the superscript of a name, in any order; ``None`` for a missing one."""
        found: dict[str, Node] = {}
        while (token := self.take("op", "^", "_")) is not None:
            found[token.text] = self.argument() if token.text == "_" else self.script()
        return found.get("_"), found.get("^")

    def _function(self, name: str) -> Node:
        """Read the power, base and argument of a function whose name has been consumed."""
        base, power = self._scripts()
        if power is not None and name in _INVERSES and whole(power) == -1:
            name, power = f"a{name}", None
        arguments = self._function_argument()
        node = Apply(name, (*arguments, base) if base is not None else arguments)
        return node if power is None else Apply("pow", (node, power))

    def _function_argument(self) -> tuple[Node, ...]:
        """Read the argument of a function: one bracket, or a product without brackets."""
        if self.is_next("open", "(", "[", "{", "\\{"):
            braced = self.is_next("open", "{")
            node = self.atom()
            if isinstance(node, BracketGroup):
                return node.items
            return (self.postfix(node) if braced and self.is_next("op", "^") else node,)
        sign = self.take("op", "-")
        parts = [self.factor()]
        while self.starts_factor() and self._continues_argument(parts):
            parts.append(self.factor())
        if _is_angle(parts) and self.is_next("num", ahead=1) and self.take("op", "/"):
            parts = [Apply("div", (_product(parts), self.factor()))]  # such as "sin pi/6"
        node = _product(parts)
        return (Apply("neg", (node,)) if sign else node,)

    def _continues_argument(self, parts: list[Node]) -> bool:
        token = self.peek()
        if token.kind == "let":
            return token.text != "e"
        if token.kind == "open":
            return all(isinstance(part, Num) for part in parts)
        return token.kind in ("num", "const", "cmd") and not isinstance(parts[-1], BracketGroup)

    def _big(self, kind: str) -> Node:
        r"""Read a sum, product, integral or limit whose symbol, such as ``\int``, has been consumed."""
        lower, upper = self._scripts()
        variable = ""
        if isinstance(lower, Relation) and len(lower.sides) == 2 and isinstance(lower.sides[0], Sym | Const):
            variable, lower = lower.sides[0].name, lower.sides[1]
        if kind != "int":
            return Big(kind, variable, lower, upper, self.term())
        saved, self.integral = self.integral, True
        body = ONE if self.at_differential() else self.sum()
        self.integral = saved
        if self.at_differential():
            self.next()
            variable = self.next().text
        return Big(kind, variable, lower, upper, body)

    def _accented(self, accent: str) -> Node:
        """Read the argument of an accent, as one name."""
        if accent in ("overset", "underset"):
            mark, under = self.argument(), self.argument()
            if isinstance(under, Num) or any(isinstance(part, Num) for part in walk(mark)):
                raise ReadError("a number is written above or below another")
            return under
        if self.is_next("open"):
            name = self.raw_script()
        else:
            several = accent in ("angle", "triangle") and self.is_next("let")
            name = self.next().text
            while several and self.is_next("let"):
                name += self.next().text
        return Sym(name if accent in names.PLAIN_ACCENTS else f"{accent} {name}")

    def _min_max(self, name: str) -> Node:
        """Read a maximum or minimum such as ``max(a, b)``; without a bracket, ``max`` and ``min`` are words."""
        if self.is_next("open", "(", "\\{", "{"):
            node = self.atom()
            return Apply(name, node.items if isinstance(node, BracketGroup) else (node,))
        if self.take("op", "_"):
            self.raw_script()
        if self.is_next("let"):
            self.factor()  # "max f = 42": a label
        return Words(name)


_READERS: dict[str, Callable[[Factors, str], Node]] = {
    **{"open": Factors.bracket, "bar": Factors.bars, "begin": Factors.environment, "text": Factors._words},
    **{"let": Factors._letter, "accent": Factors._accented, "fn": Factors._function, "cmd": Factors._command},
    **{"big": Factors._big, "minmax": Factors._min_max},
}
"""Method that reads an atom, by the kind of the atom's first token; called with the text of that token."""


def _as_number(token: Token) -> Num:
    _, point, part = token.text.partition(".")
    return Num(Fraction(token.text), len(part) if point else None)


def _is_angle(parts: list[Node]) -> bool:
    """Whether the factors are numbers and constants with pi among them."""
    return Const("pi") in parts and all(isinstance(part, Num | Const) for part in parts)


def _product(parts: list[Node]) -> Node:
    return parts[0] if len(parts) == 1 else Apply("mul", tuple(parts))


def _subscript(node: Node, text: str) -> Node:
    if isinstance(node, Num) and text.isdigit() and 2 <= int(text[:3]) <= 36:
        return Apply("base", (node, Num(Fraction(int(text)))))
    if isinstance(node, Sym | Const):
        return Sym(f"{node.name}_{text}")
    return Apply("sub", (node, Sym(text)))
