r"""Parses tokens into a tree by recursive descent: lists, relations, sums, products, factors, atoms.

Each method reads one level of the grammar, and calls the methods of lower levels. Nothing is evaluated, and no text is
passed to Python's or SymPy's parser. ``guards.MAX_NESTING`` limits the depth; the time is bounded by the number of
tokens.
"""

from __future__ import annotations

from rstar2_env.verification.read import names
from rstar2_env.verification.read.factors import Factors
from rstar2_env.verification.read.lexer import END, ReadError, Token, lex
from rstar2_env.verification.read.nodes import (
    INEQUALITIES,
    ZERO,
    Apply,
    BracketGroup,
    Const,
    Given,
    Node,
    Num,
    Quantity,
    Relation,
    Sym,
    Words,
    is_braced,
    is_interval,
    negative,
    symbols,
)
from rstar2_env.verification.read.units import DEGREE, read_unit
from rstar2_env.verification.read.vocabulary import change_said, may_precede

MAX_TOKENS = 2500
"""Length of the longest answer that is parsed, in tokens."""
_PREFIX = {"cmd": "\\", "fn": "\\", "big": "\\", "accent": "\\"}
_SOURCE = {
    **{("const", "oo"): "\\infty", ("const", "pi"): "\\pi"},
    **{("const", name): f"\\mathbb{{{name}}}" for name in names.NUMBER_SETS},
    **{("rel", name): f"\\{name}" for name in ("in", "notin", "ni", "equiv", "subset", "propto")},
    **{token: f"\\{name}" for name, token in names.COMMANDS.items() if token[0] == "set" and "big" not in name},
}


def read(text: str, *, tight_division: bool = False, letters: bool = False) -> Node:
    """Parse a cleaned text into a tree.

    Args:
        text: A text that :func:`~rstar2_env.verification.read.clean.clean` has returned.
        tight_division: Whether ``1/2x`` means ``1/(2x)`` rather than ``(1/2)x``.
        letters: See :func:`~rstar2_env.verification.read.lexer.lex`.

    Raises:
        ReadError: The text is not a single answer in a supported notation.
    """
    tokens = lex(text, letters=letters)
    if len(tokens) > MAX_TOKENS:
        raise ReadError(f"the answer has more than {MAX_TOKENS} tokens")
    reader = Reader(tokens, tight_division=tight_division)
    node = reader.items(None)
    if reader.peek() is not END:
        raise ReadError("text follows the end of the answer")
    return node


class Reader(Factors):
    """The parser, from lists down to atoms; each method reads one level of the grammar."""

    # Lists and their items.

    def items(self, closers: tuple[str, ...] | None) -> Node:
        """Read items up to one of the brackets ``closers``, or up to the end; a single item does not become a list."""
        separators: set[str] = set()
        found = self.item_list(closers, separators)
        # The word that joins conditions matters: "x < 1 or x > 2".
        joint = next((word for word in ("or", "and") if word in separators), "")
        return found[0] if len(found) == 1 else BracketGroup("", joint, tuple(found))

    def item_list(self, closers: tuple[str, ...] | None, separators: set[str]) -> list[Node]:
        """Read a list of items, and put each separator between them into the set ``separators``.

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
            start, node = self.at, self.item()
            if closers is None and groups[-1] and restricts(node, groups[-1][-1]):
                groups[-1][-1] = Given(groups[-1][-1], f"{names.RESTRICTION} {self._source(start)}")  # "sqrt(x), x > 0"
            else:
                groups[-1].append(node)
            if not self._at_separator() and not self._at_end(closers):
                raise ReadError("two values have no separator between them")
        groups = [group for group in groups if group]
        if not groups:
            raise ReadError("the answer contains no value")
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
        """Read one item of a list: a chain of relations, with the condition or remark that follows it."""
        token = self.peek()
        if token.kind == "text" and self._starts_condition(token.text.lower()):
            return Given(Words(""), self.rest_of_item())
        self.take("rel", "=")  # such as "= 5"
        node = self.chain()
        token = self.peek()
        if token.kind == "mid" and not self.no_mid:
            return Given(node, self.rest_of_item())  # such as "P(A | B)"
        if token.kind == "text" and not isinstance(node, Words):
            if (label := self._label_after()) is not None:
                ops, sides = (node.ops, node.sides) if isinstance(node, Relation) else ((), (node,))
                return Relation(("=", *ops), (label, *sides))
            starts = names.CONDITION_STARTS | names.FILLERS
            starts |= names.UNIT_STOPS - names.DENIALS if isinstance(node, Num | Quantity) else frozenset()
            if token.text.split()[0].lower() not in starts:
                raise ReadError("words follow a value")  # "x is odd" is not x
            return Given(node, self.rest_of_item())
        return node

    def _label_after(self) -> Words | None:
        """Read a label that follows its value, such as "is the least root" after 5; ``None`` for other words."""
        start, said = self.at, ""
        while self.peek().kind in ("text", "let"):
            said += f" {self.next().text}"
        verb, *label = names.lowered(said).split()
        definite = label[:1] in (["the"], ["our"], ["my"]) and not names.DENIALS.intersection(label)
        if definite and verb in names.VERBS and self._at_end(None):
            return Words(" ".join(label))
        self.at = start
        return None

    def _starts_condition(self, text: str) -> bool:
        """Whether ``text``, the next words, begins a condition such as "where k is an integer".

        "any" and "integer" also begin a condition, except at the beginning of the answer.
        """
        # At the beginning, "given expression equals 5" is a label.
        starts = names.CONDITION_STARTS | {"any", "integer"} if self.at else names.CONDITION_STARTS - {"given"}
        return text.split()[0] in starts

    def rest_of_item(self) -> str:
        """Return the text up to the next separator or bracket: a condition or remark, which is not parsed here."""
        start, depth = self.at, 0
        while (token := self.peek()) is not END:
            depth += {"open": 1, "close": -1}.get(token.kind, 0)
            if depth < 0 or (depth == 0 and token.kind in ("sep", "row", "end") and not self._continues_condition()):
                break
            self.next()
        return self._source(start)

    def _continues_condition(self) -> bool:
        """Whether "and" or "or" comes next, followed by an inequality without words, as in "x < 1 or x > 2"."""
        if not self.is_next("sep", "and", "or"):
            return False
        rest = self.tokens[self.at + 1 :]
        end = next(at for at, token in enumerate(rest) if token is END or token.kind in ("sep", "row", "end", "text"))
        compared = any(token.kind == "rel" and token.text in INEQUALITIES for token in rest[:end])
        return compared and rest[end].kind != "text"

    def _source(self, start: int) -> str:
        """Return the consumed tokens from ``start`` on as text, which can be parsed again."""
        return " ".join(
            _SOURCE.get((token.kind, token.text), _PREFIX.get(token.kind, "") + token.text)
            for token in self.tokens[start : self.at]
        )

    # Relations, sets, sums and products.

    def chain(self) -> Node:
        """Read a chain of relations, such as ``a < b = c``."""
        sides = [Words("") if self.is_next("rel", "~") else self._first_side()]  # such as "about 5"
        ops: list[str] = []
        while True:
            if (relation := self.take("rel")) is not None:
                ops.append(relation.text)
            elif isinstance(sides[-1], Words) and not ops and self._numbered_label(sides[-1].text):
                label = Words(f"{sides[-1].text} {self.next().text}")
                self.next()
                return Relation(("=",), (label, self.chain()))
            elif isinstance(sides[-1], Words) and not ops and self.starts_factor():
                # "the area is 5": the words before a verb are a label.
                if (counted := self._counted(sides[-1].text)) is not None:
                    return counted
                sides[-1] = self._label(sides[-1].text)
                ops.append("=")
            else:
                break
            sides.append(self.ratio())
        if "equiv" in ops and not any(isinstance(side, Apply) and side.op == "pmod" for side in sides):
            ops = ["=" if op == "equiv" else op for op in ops]
        return Relation(tuple(ops), tuple(sides)) if ops else sides[0]

    def _label(self, said: str) -> Words:
        """Read the rest of a label that ends in a verb, before a value: "the value of k is", "sales fell by"."""
        named = self.is_next("open") and names.STRUCTURES.issuperset(said.lower().split())  # as in "the point (3, -2)"
        if change_said(change := f"{said.removesuffix(' by')} by"):
            said, named = change, True
        while (label := said if named else names.label_before(said)) is None:
            if self.peek().kind not in ("text", "let"):
                raise ReadError("words precede a value")
            said = f"{said} {self.next().text}"
        if names.DENIALS.intersection(said.lower().split()):
            raise ReadError("the words before a value negate it")
        return Words(label)

    def _counted(self, word: str) -> Node | None:
        """Read a number that follows its counted noun (Swahili "dola 18"), alone or with a unit; otherwise ``None``."""
        if self.peek().kind not in ("num", "money") or " " in word:
            return None
        start, value = self.at, self.ratio()
        if self.peek() is END and isinstance(value, Num | Quantity) and may_precede(word.lower()):
            number, unit = (value.value, f"{value.unit} {word}") if isinstance(value, Quantity) else (value, word)
            return Quantity(number, unit)
        self.at = start
        return None

    def _first_side(self) -> Node:
        """Read the first side of a relation: skip filler words such as "only", and turn "about" into the sign ``~``."""
        side = self.ratio()
        while isinstance(side, Words) and self.starts_factor():
            said = set(side.text.lower().split())
            if not said - {"the"} <= names.FILLERS:
                break
            if said & names.APPROXIMATIONS:
                self.at -= 1
                self.tokens[self.at] = Token("rel", "~", spaced=True)
                return Words("")
            side = self.ratio()
        return side

    def _numbered_label(self, text: str) -> bool:
        """Whether the words are a label with a number and a colon: "Case 2: x = 5", but not "the ratio is 3:5"."""
        return self.is_next("num") and self.is_next("colon", ahead=1) and text.split()[-1].lower() not in names.VERBS

    def ratio(self) -> Node:
        """Read a ratio such as ``a : b : c``; if words come before a colon, they are a label."""
        parts = [self.union()]
        while not self.no_colon and self.take("colon"):
            if isinstance(parts[0], Words):
                return Relation(("=",), (parts[0], self.chain()))
            parts.append(self.union())
        return parts[0] if len(parts) == 1 else Apply("ratio", tuple(parts))

    def union(self) -> Node:
        """Read unions, intersections and differences of sets, from left to right."""
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
            term = self.signed(self.term) if sign else self.term()
            if sign == "-" and terms and is_number_set(terms[-1]) and is_braced(term):
                terms[-1] = Apply("diff", (terms[-1], term))  # such as "R - {0}"
            elif sign in ("pm", "mp"):
                terms = [Apply(sign, (add(terms) if terms else ZERO, term))]
            else:
                terms.append(negative(term) if sign == "-" else term)
        if not terms:
            raise ReadError("a value is missing")
        return add(terms)

    def term(self) -> Node:
        """Read a product: explicit and implicit multiplication, divisions, remainders, and the unit at the end."""
        node = self.factor()
        while True:
            token = self.peek()
            if self.take("op", "*"):
                node = times(node, self.signed(self.factor))
            elif self.take("op", "/"):
                node = Apply("div", (node, self._divisor(self.signed(self.factor))))
            elif self.take("op", "mod", "oplus", "otimes", "wedge"):
                node = Apply(token.text, (node, self.signed(self.factor)))
            elif self.take("pmod"):
                node = Apply("pmod", (node, self.argument()))
            elif token.kind == "text" or (isinstance(node, Num | Quantity) and self._says_each()):
                if isinstance(node, Words) or (unit := self.unit()) is None:
                    return node
                node = Quantity(node, unit)
            elif self.starts_factor() and not isinstance(node, Words):
                start, right = self.at, self.factor()
                if isinstance(node, Quantity) and isinstance(right, Num) and (unit := self.unit()) is not None:
                    right = Quantity(right, unit)  # such as "3 hours 20 minutes"
                if isinstance(right, Words) and not isinstance(node, Quantity) and not is_condition(right.text):
                    node = Quantity(node, right.text)  # such as "38 (liters)"
                elif (condition := as_condition(right, self._source(start))) is not None:
                    node = Given(node, condition)
                elif (made := applied(node, token, right)) is not None:
                    node = made
                else:
                    node = times(node, right)
            else:
                return node

    def _divisor(self, right: Node) -> Node:
        """Read the rest of a divisor; with tight division (``1/2x`` is ``1/(2x)``), implicit factors belong to it."""
        while self.tight_division and not self.peek().spaced and self.starts_factor():
            right = times(right, self.factor())
        return right

    def unit(self) -> str | None:
        """Read the unit or remark after a value, or return ``None`` if the words there begin a condition."""
        first = self.peek(int(self._says_each()))
        if first.kind != "text" or is_condition(first.text):
            return None
        parts: list[str] = []
        while True:
            token, after = self.peek(), self.peek(1)
            if token.kind == "text" and not is_condition(token.text):
                parts.append(self.next().text)
            elif self._says_each() and self.take("let"):
                parts.append("per")  # such as "18 dollars a day"
            elif parts and self.take("op", "^"):
                parts.append("^" + self.raw_script())
            elif after.kind == "text" and self.take("op", "/", "*", "-"):
                parts.append(" " if token.text == "-" else token.text)
            elif after.kind == "let" and read_unit(after.text) is not None and self.take("op", "/", "*"):
                parts.append(f"{token.text}{self.next().text}")  # such as "km/h"
            elif parts and token.kind == "let" and read_unit(token.text) is not None:
                parts.append(self.next().text)  # such as "kg m"
            else:
                break
        unit = " ".join(parts)
        return "%" if unit.lower() in names.PERCENT_WORDS else unit

    def _says_each(self) -> bool:
        """Whether "a" and a word come next, as in "18 dollars a day"."""
        return self.is_next("let", "a") and self.is_next("text", ahead=1)


_FUNCTION_LETTERS = frozenset("fghFGHPQRSTEIVuyv")

_PARTS_OF_DEGREE = {"'": "minutes", "''": "seconds"}


def applied(node: Node, token: Token, right: Node) -> Node | None:
    """Return ``f(2)`` or ``I(0)`` (a letter applied to a number) as one name; ``None`` for other factors.

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


def is_condition(text: str) -> bool:
    """Return whether a text begins like a condition, such as "for all n"."""
    return text.split()[0].lower() in names.UNIT_STOPS


def as_condition(node: Node, text: str) -> str | None:
    """Return the condition that a bracket after an expression states, such as ``(k in Z)``; else ``None``.

    Args:
        node: The content of the bracket.
        text: The bracket as text.

    Raises:
        ReadError: The bracket holds another value instead of a condition.
    """
    second = isinstance(node, Given) and isinstance(node.body, Num | Quantity)  # such as "20 (25 if inclusive)"
    if second or (isinstance(node, Relation) and any(isinstance(side, Words) for side in node.sides)):
        raise ReadError("a second value follows the first one")  # such as "9 (should be 10)"
    if isinstance(node, Given) and node.body == Words(""):
        return node.condition
    if isinstance(node, Relation | Given):
        return f"{names.RESTRICTION} {text[1:-1].strip()}"
    return node.text if isinstance(node, Words) else None


def restricts(node: Node, value: Node) -> bool:
    """Return whether a node restricts the variables of the value before it: an inequality, or ``x in [0, 1)``."""
    if not isinstance(node, Relation):
        return False
    interval = node.ops == ("in",) and isinstance(node.sides[0], Sym) and is_interval(node.sides[1])
    if not interval and not set(node.ops) <= INEQUALITIES:
        return False
    if isinstance(value, Relation):
        value = value.sides[-1] if set(value.ops) == {"="} else node
    return value is not node and bool(symbols(node)) and symbols(node) <= symbols(value)


def is_number_set(node: Node) -> bool:
    """Return whether a node is a set of numbers, such as R, or R without 0."""
    named = isinstance(node, Const) and node.name in names.NUMBER_SETS
    return named or (isinstance(node, Apply) and node.op == "diff")


def add(terms: list[Node]) -> Node:
    """Return the sum of terms; a unit or a condition after the last term applies to the whole sum."""
    if len(terms) == 1:
        return terms[0]
    last = terms[-1]
    if isinstance(last, Quantity) and not any(isinstance(term, Quantity) for term in terms[:-1]):
        return Quantity(Apply("add", (*terms[:-1], last.value)), last.unit)
    if isinstance(last, Given):
        return Given(Apply("add", (*terms[:-1], last.body)), last.condition)
    return Apply("add", tuple(terms))


def _part_of_degree(node: Node) -> Node | None:
    """Return an angle in minutes or seconds as a part of a degree; ``None`` for other nodes."""
    if not isinstance(node, Quantity) or not isinstance(node.value, Num):
        return None
    unit = read_unit(_PARTS_OF_DEGREE.get(node.unit, node.unit))
    if unit is None or unit.dimension != (("s", 1),) or unit.factor not in (1, 60):
        return None
    return Num(node.value.value * unit.factor / 3600)


def _in_degrees(node: Node) -> Node | None:
    """Return the number of degrees of an angle; ``None`` for other nodes."""
    if isinstance(node, Apply):
        return node.args[0] if node.op == "deg" else None
    return node.value if isinstance(node, Quantity) and read_unit(node.unit) == DEGREE else None


def times(left: Node, right: Node) -> Node:
    """Return the product of two factors; an angle in degrees and minutes, or "3 hours 20 minutes", is one value."""
    if (part := _part_of_degree(right)) is not None and (degrees := _in_degrees(left)) is not None:
        return Apply("deg", (Apply("add", (degrees, part)),))  # such as "22 degrees 30 minutes"
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        return Apply("together", (left, right))  # such as "3 hours 20 minutes"
    if isinstance(right, Quantity):
        return Quantity(Apply("mul", (left, right.value)), right.unit)
    factors = left.args if isinstance(left, Apply) and left.op == "mul" else (left,)
    return Apply("mul", (*factors, right))
