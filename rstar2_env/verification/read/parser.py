r"""Read tokens into a tree by recursive descent: lists, relations, sums, products, factors, atoms.

One method reads one level of the grammar; each calls those below it. Nothing here evaluates anything, and no text is
passed to Python's or SymPy's own parser. Depth is bounded by the guard on nesting, time by the number of tokens.
"""

from __future__ import annotations

from fractions import Fraction

from rstar2_env.verification.read import names
from rstar2_env.verification.read.cursor import END, Cursor
from rstar2_env.verification.read.lexer import ReadError, Token, lex
from rstar2_env.verification.read.nodes import (
    ONE,
    ZERO,
    Apply,
    Big,
    BracketGroup,
    Builder,
    Const,
    Given,
    Matrix,
    Node,
    Num,
    Quantity,
    Relation,
    Sym,
    Words,
    walk,
    whole,
)
from rstar2_env.verification.read.units import read_unit

MAX_TOKENS = 2500
"""Longest answer that is read, in tokens."""

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
_ORDINALS = ("th", "st", "nd", "rd", "tanh")  # a bare "th" reads as the hyperbolic tangent
_FUNCTION_LETTERS = frozenset("fghFGHPQRSTEIVuyv")
_PREFIX = {"cmd": "\\", "fn": "\\", "big": "\\", "accent": "\\"}
_SOURCE = {("const", "oo"): "\\infty", ("const", "pi"): "\\pi"}


def read(text: str, *, tight_division: bool = False, letters: bool = False) -> Node:
    """Read a cleaned text.

    Args:
        text: A text as :func:`~rstar2_env.verification.read.clean.clean` returns it.
        tight_division: Read ``1/2x`` as ``1/(2x)`` rather than ``(1/2)x``.
        letters: See :func:`~rstar2_env.verification.read.lexer.lex`.

    Raises:
        ReadError: The text is not one answer in a supported notation.
    """
    tokens = lex(text, letters=letters)
    if len(tokens) > MAX_TOKENS:
        raise ReadError(f"the answer has more than {MAX_TOKENS} tokens")
    reader = Reader(tokens, tight_division=tight_division)
    node = reader.items(None)
    if reader.peek() is not END:
        raise ReadError("text follows the end of the answer")
    return node


class Reader(Cursor):
    """The grammar, from lists down to atoms."""

    # Lists and their items.

    def items(self, closers: tuple[str, ...] | None) -> Node:
        """Read items between separators, up to a closing bracket or the end; a single item is returned as it is."""
        separators: set[str] = set()
        found = self.item_list(closers, separators)
        # The word that joins conditions matters: "x < 1 or x > 2".
        joint = next((word for word in ("or", "and") if word in separators), "")
        return found[0] if len(found) == 1 else BracketGroup("", joint, tuple(found))

    def fresh(self, closers: tuple[str, ...]) -> Node:
        """Read the items of a bracket, in which no outer bar, row or integral counts as open."""
        saved = self.open_bars, self.rows, self.no_colon, self.no_mid, self.integral
        self.open_bars, self.rows, self.no_colon, self.no_mid, self.integral = 0, 0, False, False, False
        node = self.items(closers)
        self.open_bars, self.rows, self.no_colon, self.no_mid, self.integral = saved
        return node

    def item_list(self, closers: tuple[str, ...] | None, separators: set[str]) -> list[Node]:
        """Read items, and add the separators between them to ``separators``.

        If both ``;`` and ``,`` occur, ``;`` separates groups.
        """
        groups: list[list[Node]] = [[]]
        while True:
            while self._at_separator():
                token = self.next()
                separators.add(token.text)
                if token.text == ";" and groups[-1]:
                    groups.append([])
            if self._at_end(closers):
                break
            groups[-1].append(self.item())
            if not self._at_separator() and not self._at_end(closers):
                raise ReadError("two values have no separator between them")
        groups = [group for group in groups if group]
        if not groups:
            raise ReadError("the answer has no value")
        if len(groups) == 1 or "," not in separators:
            return [node for group in groups for node in group]
        return [group[0] if len(group) == 1 else BracketGroup("", "", tuple(group)) for group in groups]

    def _at_separator(self) -> bool:
        return self.is_next("sep") or (self.is_next("row") and self.rows == 0)

    def _at_end(self, closers: tuple[str, ...] | None) -> bool:
        token = self.peek()
        if token is END or token.kind in ("end", "amp", "row"):
            return True
        return closers is not None and token.text in closers and token.kind in ("close", "bar", "mid", "colon")

    def item(self) -> Node:
        """Read one item: a chain of relations, with the condition or remark that follows it."""
        token = self.peek()
        if token.kind == "text" and self._starts_condition(token.text.lower()):
            return Given(Words(""), self.rest_of_item())
        self.take("rel", "=", "~")  # "= 5"
        node = self.chain()
        token = self.peek()
        if token.kind == "mid" and not self.no_mid:
            return Given(node, self.rest_of_item())  # "P(A | B)"
        if token.kind == "text" and not isinstance(node, Words):
            starts = names.CONDITION_STARTS | names.FILLERS
            starts |= names.UNIT_STOPS - names.DENIALS if isinstance(node, Num | Quantity) else frozenset()
            if token.text.split()[0].lower() not in starts:
                raise ReadError("words follow a value")  # "x is odd" is not x
            return Given(node, self.rest_of_item())
        return node

    def _starts_condition(self, text: str) -> bool:
        """Whether an item such as "where k is an integer" or, after another, "any integer n" begins here."""
        first = text.split()[0]
        return first in names.CONDITION_STARTS or (self.at > 0 and first in ("any", "integer"))

    def rest_of_item(self) -> str:
        """Return the tokens up to the next separator or bracket as text: a condition or remark that is not parsed."""
        words: list[str] = []
        depth = 0
        while (token := self.peek()) is not END:
            depth += {"open": 1, "close": -1}.get(token.kind, 0)
            if depth < 0 or (depth == 0 and token.kind in ("sep", "row", "end")):
                break
            self.next()
            words.append(_SOURCE.get((token.kind, token.text), _PREFIX.get(token.kind, "") + token.text))
        return " ".join(words)

    # Relations, sets, sums and products.

    def chain(self) -> Node:
        """Read ``a < b = c``."""
        sides = [self._first_side()]
        ops: list[str] = []
        while True:
            if (relation := self.take("rel")) is not None:
                joined = relation.text in "<>" and self.take("rel", "=") is not None
                ops.append(f"{relation.text}=" if joined else relation.text)
            elif isinstance(sides[-1], Words) and not ops and self._numbered_label(sides[-1].text):
                label = Words(f"{sides[-1].text} {self.next().text}")
                self.next()
                return Relation(("=",), (label, self.chain()))
            elif isinstance(sides[-1], Words) and not ops and self.starts_factor():
                # "the area is 5": the words before a verb are a label.
                if (counted := self._counted(sides[-1].text)) is not None:
                    return counted
                said = sides[-1].text.lower().split()
                named = self.is_next("open") and names.STRUCTURES.issuperset(said)  # "the point (3, -2)"
                if not (named or said[-1] in names.VERBS) or names.DENIALS.intersection(said):
                    raise ReadError("words precede a value")
                ops.append("=")
            else:
                break
            sides.append(self.ratio())
        if "equiv" in ops and not any(isinstance(side, Apply) and side.op == "pmod" for side in sides):
            ops = ["=" if op == "equiv" else op for op in ops]
        return Relation(tuple(ops), tuple(sides)) if ops else sides[0]

    def _counted(self, word: str) -> Node | None:
        """Read the number after one word that names what is counted ("dola 18"), if only a unit follows the number."""
        if self.peek().kind not in ("num", "money") or " " in word:
            return None
        start, value = self.at, self.ratio()
        countable = isinstance(value, Num | Quantity) and word.lower() not in names.VERBS
        if self.peek() is END and countable:
            return (
                Quantity(value.value, f"{value.unit} {word}") if isinstance(value, Quantity) else Quantity(value, word)
            )
        self.at = start
        return None

    def _first_side(self) -> Node:
        """Read the first side; filler words ("only") before a value are skipped."""
        side = self.ratio()
        while isinstance(side, Words) and self.starts_factor():
            if not set(side.text.lower().split()) - {"the"} <= names.FILLERS:
                break
            side = self.ratio()
        return side

    def _numbered_label(self, text: str) -> bool:
        """Whether a number and a colon after the words number a label: "Case 2: x = 5", not "the ratio is 3:5"."""
        return self.is_next("num") and self.is_next("colon", ahead=1) and text.split()[-1].lower() not in names.VERBS

    def ratio(self) -> Node:
        """Read ``a : b : c``; after words, a colon makes them a label."""
        parts = [self.union()]
        while not self.no_colon and self.take("colon"):
            if isinstance(parts[0], Words):
                return Relation(("=",), (parts[0], self.chain()))
            parts.append(self.union())
        return parts[0] if len(parts) == 1 else Apply("ratio", tuple(parts))

    def union(self) -> Node:
        """Read unions, intersections and differences of sets, from the left."""
        node = self.sum()
        while (operation := self.take("set")) is not None:
            node = Apply(operation.text, (node, self.sum()))
        return node

    def sum(self) -> Node:
        """Read a sum of signed terms."""
        terms: list[Node] = []
        while self.peek() is not END:
            operator = self.take("op", "+", "-", "pm", "mp")
            if operator is None and terms:
                break
            sign = operator.text if operator is not None else ""
            term = self.signed_term() if sign else self.term()
            if sign == "-" and terms and _is_number_set(terms[-1]) and _is_finite_set(term):
                terms[-1] = Apply("diff", (terms[-1], term))  # "R - {0}"
            elif sign in ("pm", "mp"):
                terms = [Apply(sign, (_add(terms) if terms else ZERO, term))]
            else:
                terms.append(_negative(term) if sign == "-" else term)
        if not terms:
            raise ReadError("a value is missing")
        return _add(terms)

    def signed_term(self) -> Node:
        """Read a term that may have a sign of its own, as in ``+ -3``."""
        if (sign := self.take("op", "+", "-")) is not None:
            term = self.signed_term()
            return _negative(term) if sign.text == "-" else term
        return self.term()

    def term(self) -> Node:
        """Read a product: explicit, implicit, divisions, remainders, and the unit at its end."""
        node = self.factor()
        while True:
            token = self.peek()
            if self.take("op", "*"):
                node = _times(node, self.signed_factor())
            elif self.take("op", "/"):
                node = Apply("div", (node, self._divisor(self.signed_factor())))
            elif self.take("op", "mod", "oplus", "otimes", "wedge"):
                node = Apply(token.text, (node, self.signed_factor()))
            elif self.take("pmod"):
                node = Apply("pmod", (node, self.argument()))
            elif token.kind == "text" or (isinstance(node, Num | Quantity) and self._says_each()):
                if isinstance(node, Words) or (unit := self.unit()) is None:
                    return node
                node = Quantity(node, unit)
            elif self.starts_factor() and not isinstance(node, Words):
                right = self.factor()
                if isinstance(node, Quantity) and isinstance(right, Num) and (unit := self.unit()) is not None:
                    right = Quantity(right, unit)  # "3 hours 20 minutes"
                if isinstance(right, Words) and not isinstance(node, Quantity) and not _is_condition(right.text):
                    node = Quantity(node, right.text)  # "38 (liters)"
                elif (condition := _as_condition(right)) is not None:
                    node = Given(node, condition)
                elif (applied := _applied(node, token, right)) is not None:
                    node = applied
                else:
                    node = _times(node, right)
            else:
                return node

    def _divisor(self, right: Node) -> Node:
        """Read the rest of a divisor; with tight division, implicit factors right after it belong to it."""
        while self.tight_division and not self.peek().spaced and self.starts_factor():
            right = _times(right, self.factor())
        return right

    def unit(self) -> str | None:
        """Read the unit or remark after a value, or return ``None`` if the words there begin a condition."""
        first = self.peek(int(self._says_each()))
        if first.kind != "text" or _is_condition(first.text):
            return None
        parts: list[str] = []
        while True:
            token, after = self.peek(), self.peek(1)
            if token.kind == "text" and not _is_condition(token.text):
                parts.append(self.next().text)
            elif self._says_each() and self.take("let"):
                parts.append("per")  # "18 dollars a day"
            elif parts and self.take("op", "^"):
                parts.append("^" + self.raw_script())
            elif after.kind == "text" and self.take("op", "/", "*", "-"):
                parts.append(" " if token.text == "-" else token.text)
            elif after.kind == "let" and read_unit(after.text) is not None and self.take("op", "/", "*"):
                parts.append(f"{token.text}{self.next().text}")  # "km/h"
            elif parts and token.kind == "let" and read_unit(token.text) is not None:
                parts.append(self.next().text)  # "kg m"
            else:
                break
        unit = " ".join(parts)
        return "%" if unit.lower() in names.PERCENT_WORDS else unit

    def _says_each(self) -> bool:
        """Whether "a" and a word come next, as in "18 dollars a day"."""
        return self.is_next("let", "a") and self.is_next("text", ahead=1)

    # Factors: atoms, and what is attached to them.

    def signed_factor(self) -> Node:
        """Read a factor that may have a sign, as after an operator."""
        if (sign := self.take("op", "+", "-")) is not None:
            factor = self.signed_factor()
            return Apply("neg", (factor,)) if sign.text == "-" else factor
        return self.factor()

    def factor(self) -> Node:
        """Read an atom with its powers, subscripts, factorials, degrees, percent sign and currency."""
        return self.postfix(self.atom())

    def postfix(self, node: Node) -> Node:
        """Read the powers, subscripts, factorials and marks after an atom."""
        while True:
            if self.take("op", "^"):
                node = self.power(node)
            elif self.take("op", "_"):
                node = _subscript(node, self.raw_script())
            elif self.take("op", "!"):
                node = Apply("fact2" if self.take("op", "!") else "fact", (node,))
            elif isinstance(node, Sym | Const) and self.take("prime"):
                node = Sym(node.name + "'")
            elif isinstance(node, Apply) and node.op == "deg" and self.take("prime"):
                pass  # a stray minute mark
            elif self.take("deg"):
                node = self._degrees(node)
            elif self.take("pct"):
                node = Quantity(node, "%")
            elif not isinstance(node, Quantity) and (currency := self.take("money")) is not None:
                node = Quantity(node, currency.text)
            else:
                return node

    def power(self, base: Node) -> Node:
        """Read an exponent whose ``^`` has been consumed.

        A degree sign, a prime and the "th" of an ordinal are not exponents.
        """
        if self.peek() is END or self.peek().kind in ("close", "sep", "row", "amp", "end"):
            return base  # a caret with nothing after it
        if self.take("op", "*"):
            return Apply("conj", (base,))
        if isinstance(base, BracketGroup) and base.open in ("(", "[") and self._transposes():
            return Matrix(tuple((item,) for item in base.items))
        if isinstance(base, Matrix) and self._transposes():
            return Matrix(tuple(zip(*base.rows, strict=True)))
        inner = self.peek(1)
        braced = self.is_next("open", "{") and self.is_next("close", ahead=2)
        if braced and (inner.kind in ("deg", "prime") or (inner.kind in ("text", "fn") and inner.text in _ORDINALS)):
            self.at += 3
            mark = inner.kind
        elif self.peek().kind in ("deg", "prime") or self.is_next("text", *_ORDINALS):
            mark = self.next().kind
        else:
            return Apply("pow", (base, self.script()))
        if mark == "deg":
            return self._degrees(base)
        return Sym(base.name + "'") if mark == "prime" and isinstance(base, Sym) else base

    def _transposes(self) -> bool:
        """Read the mark of a transpose, ``T`` or ``{T}`` after ``^``; whether there is one."""
        if self.take("let", "T") or self.take("cmd", "top", "intercal"):
            return True
        if self.is_next("open", "{") and self.peek(1).text == "T" and self.is_next("close", ahead=2):
            self.at += 3
            return True
        return False

    def _degrees(self, node: Node) -> Node:
        token = self.peek()
        if token.kind in ("let", "text") and token.text in ("C", "F"):
            self.next()
            return Quantity(node, f"deg{token.text}")
        if token.kind == "num" and self.is_next("prime", ahead=1):
            minutes = Fraction(self.next().text) / 60
            self.next()
            if self.is_next("num") and self.is_next("prime", ahead=1):
                minutes += Fraction(self.next().text) / 3600
                while self.take("prime"):
                    pass
            return Apply("deg", (Apply("add", (node, Num(minutes))),))
        return Apply("deg", (node,))

    def atom(self) -> Node:
        """Read an atom."""
        token = self.next()
        match token.kind:
            case "num":
                return self._number(token)
            case "let":
                return self._letter(token.text)
            case "const":
                return Const(token.text)
            case "dots":
                return Sym("...")
            case "cmd":
                return self._command(token.text)
            case "fn":
                return self._function(token.text)
            case "open":
                return self._bracket(token.text)
            case "bar":
                return self._bars(token.text)
            case "big":
                return self._big(token.text)
            case "accent":
                return self._accented(token.text)
            case "minmax":
                return self._min_max(token.text)
            case "money":
                return Quantity(self.factor(), token.text)
            case "begin":
                return self._environment(token.text)
            case "text":
                return self._words(token.text)
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
            self.next()  # "x1"
            return Sym(f"{name}_{after.text}")
        return Sym(name)

    def _words(self, text: str) -> Node:
        words = [text]
        while (word := self.take("text")) is not None:
            words.append(word.text)
        return Words(" ".join(words))

    # Names that take arguments.

    def argument(self, *, split: bool = False) -> Node:
        r"""Read the argument of a command: a group, or one token; with ``split``, only one digit of ``\frac12``."""
        if self.take("open", "{"):
            node = self.fresh(("}",))
            self.close(("}",))
            return node
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
        """Read an exponent: a group, or a signed atom such as in ``10^-3``."""
        if (sign := self.take("op", "-", "+")) is not None:
            inner = self.script()
            return Apply("neg", (inner,)) if sign.text == "-" else inner
        node = self.argument()
        return self.power(node) if self.take("op", "^") else node  # a tower binds from the right

    def _command(self, name: str) -> Node:
        """Read a fraction, a binomial or a root whose command has been consumed."""
        if name in ("frac", "binom"):
            top, bottom = self.argument(split=True), self.argument(split=True)
            return Apply("div" if name == "frac" else name, (top, bottom))
        if self.take("open", "["):
            index = self.items(("]",))
            self.close(("]",))
            return Apply("root", (self.argument(), index))
        return Apply("root", (self.argument(), Num(Fraction(2))))

    def _function(self, name: str) -> Node:
        """Read the power, base and argument of a function whose name has been consumed."""
        power: Node | None = None
        base: Node | None = None
        while (token := self.take("op", "^", "_")) is not None:
            if token.text == "^":
                power = self.script()
            else:
                base = self.argument()
        if power is not None and name in _INVERSES and _is_minus_one(power):
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
            parts = [Apply("div", (_product(parts), self.factor()))]  # "sin pi/6"
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
        """Read a sum, product, integral or limit whose sign has been consumed."""
        lower: Node | None = None
        upper: Node | None = None
        while (token := self.take("op", "^", "_")) is not None:
            if token.text == "_":
                lower = self.argument()
            else:
                upper = self.script()
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
        """Read the largest or smallest of some values; without a bracket, ``max`` and ``min`` are words."""
        if self.is_next("open", "(", "\\{", "{"):
            node = self.atom()
            return Apply(name, node.items if isinstance(node, BracketGroup) else (node,))
        if self.take("op", "_"):
            self.raw_script()
        if self.is_next("let"):
            self.factor()  # "max f = 42": a label
        return Words(name)

    # Brackets.

    def _bracket(self, opening: str) -> Node:
        """Read the content of a bracket that has been opened: a value, a tuple, an interval, a set."""
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
            conditions = self.item_list(_CLOSERS[opening], set())
            self.close(_CLOSERS[opening])
        except ReadError:
            self.at = start
            return None
        finally:
            self.no_colon, self.no_mid = saved
        return Builder(head, tuple(conditions))

    def _bars(self, bar: str) -> Node:
        """Read an absolute value or a norm whose first bar has been consumed."""
        self.open_bars += 1
        node = self.items((bar,))
        self.close((bar,))
        self.open_bars -= 1
        return Apply("abs" if bar == "|" else "norm", (node,))

    def _environment(self, name: str) -> Node:
        """Read a matrix, or the lines of a layout."""
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


def _as_number(token: Token) -> Num:
    _, point, part = token.text.partition(".")
    return Num(Fraction(token.text), len(part) if point else None)


def _is_minus_one(node: Node) -> bool:
    if isinstance(node, Apply):
        return node.op == "neg" and isinstance(node.args[0], Num) and node.args[0].value == 1
    return isinstance(node, Num) and node.value == -1


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


def _applied(node: Node, token: Token, right: Node) -> Node | None:
    """Return ``f(2)`` or ``I(0)`` as one name, since a letter applied to a number is not a product; else ``None``.

    Args:
        node: The factors so far.
        token: The first token of ``right``.
        right: The next factor.
    """
    if token.kind != "open" or token.text != "(" or token.spaced:
        return None
    inner = right.args[0] if isinstance(right, Apply) and right.op == "neg" else right
    last = node.args[-1] if isinstance(node, Apply) and node.op == "mul" else node
    if not isinstance(inner, Num) or not isinstance(last, Sym):
        return None
    if inner.value != 0 and last.name.partition("_")[0].rstrip("'") not in _FUNCTION_LETTERS:
        return None
    name = Sym(f"{last.name}({'' if inner is right else '-'}{inner.value})")
    return Apply("mul", (*node.args[:-1], name)) if last is not node and isinstance(node, Apply) else name


def _is_condition(text: str) -> bool:
    return text.split()[0].lower() in names.UNIT_STOPS


def _as_condition(node: Node) -> str | None:
    """The condition that a bracket such as ``(k in Z)`` or ``(x != 0)`` states after an expression; else ``None``."""
    second = isinstance(node, Given) and isinstance(node.body, Num | Quantity)  # "20 (25 if inclusive)"
    if second or (isinstance(node, Relation) and any(isinstance(side, Words) for side in node.sides)):
        raise ReadError("a second value follows")  # "9 (should be 10)"
    if isinstance(node, Given) and isinstance(node.body, Words) and not node.body.text:
        return node.condition
    if isinstance(node, Relation | Given):
        return "given"
    return node.text if isinstance(node, Words) else None


def _is_number_set(node: Node) -> bool:
    return (isinstance(node, Const) and node.name in names.NUMBER_SETS) or (
        isinstance(node, Apply) and node.op == "diff"
    )


def _is_finite_set(node: Node) -> bool:
    return isinstance(node, BracketGroup) and node.open == "\\{"


def _add(terms: list[Node]) -> Node:
    if len(terms) == 1:
        return terms[0]
    last = terms[-1]
    if isinstance(last, Quantity) and not any(isinstance(term, Quantity) for term in terms[:-1]):
        return Quantity(Apply("add", (*terms[:-1], last.value)), last.unit)
    if isinstance(last, Given):
        return Given(Apply("add", (*terms[:-1], last.body)), last.condition)
    return Apply("add", tuple(terms))


def _negative(node: Node) -> Node:
    if isinstance(node, Num):
        return Num(-node.value, node.decimals)
    if isinstance(node, Quantity):
        return Quantity(_negative(node.value), node.unit)
    if isinstance(node, Given):
        return Given(_negative(node.body), node.condition)
    return Apply("neg", (node,))


def _part_of_degree(node: Node) -> Node | None:
    """Return an angle in minutes or seconds as a part of a degree; ``None`` for other nodes."""
    if not isinstance(node, Quantity) or not isinstance(node.value, Num):
        return None
    unit = read_unit(node.unit)
    if unit is None or unit.dimension != (("s", 1),) or unit.factor not in (1, 60):
        return None
    return Num(node.value.value * unit.factor / 3600)


def _in_degrees(node: Node) -> Node | None:
    """Return the number of degrees of an angle; ``None`` for other nodes."""
    if isinstance(node, Apply):
        return node.args[0] if node.op == "deg" else None
    unit = read_unit(node.unit) if isinstance(node, Quantity) else None
    return node.value if isinstance(node, Quantity) and unit is not None and unit.dimension == (("deg", 1),) else None


def _times(left: Node, right: Node) -> Node:
    if (part := _part_of_degree(right)) is not None and (degrees := _in_degrees(left)) is not None:
        return Apply("deg", (Apply("add", (degrees, part)),))  # "22 degrees 30 minutes"
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        return Apply("together", (left, right))  # "3 hours 20 minutes"
    if isinstance(right, Quantity) and not isinstance(left, Quantity):
        return Quantity(Apply("mul", (left, right.value)), right.unit)
    if isinstance(left, Apply) and left.op == "mul":
        return Apply("mul", (*left.args, right))
    return Apply("mul", (left, right))
