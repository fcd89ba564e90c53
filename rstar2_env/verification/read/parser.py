r"""Read tokens into a tree: lists, relations, sets and sums, by recursive descent.

Covered: the levels of structure above a factor. Factors (numbers, functions, brackets, matrices) are in ``factors``.
Nothing here evaluates anything, and no text is passed to Python's or SymPy's own parser. Depth is bounded by the guard
on nesting, time by the number of tokens.
"""

from __future__ import annotations

from rstar2_env.verification.read import names
from rstar2_env.verification.read.factors import FactorReader
from rstar2_env.verification.read.lexer import ReadError, Token, lex
from rstar2_env.verification.read.nodes import (
    ZERO,
    Apply,
    BracketGroup,
    Given,
    Node,
    Num,
    Quantity,
    Relation,
    Sym,
    Words,
)
from rstar2_env.verification.read.units import is_remark

MAX_TOKENS = 2500
"""Longest answer that is read, in tokens."""


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
        raise ReadError("too many tokens")
    reader = Reader(tokens, tight_division=tight_division)
    node = reader.items(None)
    if reader.peek() is not None:
        raise ReadError("text after the end of the answer")
    return node


class Reader(FactorReader):
    """The upper levels of the grammar."""

    def items(self, closers: tuple[str, ...] | None) -> Node:
        """Read items between separators, up to a closing bracket or the end; one item comes back as itself."""
        separators: set[str] = set()
        found = self.item_list(closers, separators)
        # The word that joins conditions matters: "x < 1 or x > 2".
        joint = next((word for word in ("or", "and") if word in separators), "")
        return found[0] if len(found) == 1 else BracketGroup("", joint, tuple(found))

    def item_list(self, closers: tuple[str, ...] | None, separators: set[str] | None = None) -> list[Node]:
        """The items themselves. If both ``;`` and ``,`` occur, ``;`` separates groups."""
        groups: list[list[Node]] = [[]]
        separators = set() if separators is None else separators
        while True:
            self._skip_separators(groups, separators)
            if self._at_end(closers):
                break
            groups[-1].append(self.item())
            if not self._at_separator() and not self._at_end(closers):
                raise ReadError("two answers with nothing between them")
        groups = [group for group in groups if group]
        if not groups:
            raise ReadError("nothing to read")
        if len(groups) == 1 or "," not in separators:
            return [node for group in groups for node in group]
        return [group[0] if len(group) == 1 else BracketGroup("", "", tuple(group)) for group in groups]

    def _skip_separators(self, groups: list[list[Node]], separators: set[str]) -> None:
        while self._at_separator():
            token = self.next()
            separators.add(token.text)
            if token.text == ";" and groups[-1]:
                groups.append([])

    def _at_separator(self) -> bool:
        token = self.peek()
        return token is not None and (token.kind == "sep" or (token.kind == "row" and self.rows == 0))

    def _at_end(self, closers: tuple[str, ...] | None) -> bool:
        token = self.peek()
        if token is None:
            return True
        if token.kind in ("end", "amp", "row"):
            return True
        return closers is not None and token.text in closers and token.kind in ("close", "bar", "mid", "colon")

    def item(self) -> Node:
        """Read one item: a chain of relations, with the condition or remark that follows it."""
        token = self.peek()
        if token is not None and token.kind == "text" and self._starts_condition(token.text.lower()):
            return Given(Words(""), self.rest_of_item())
        if token is not None and token.kind == "rel" and token.text in ("=", "~"):
            self.next()  # "= 5"
        node = self.chain()
        token = self.peek()
        if token is not None and token.kind == "mid" and not self.no_mid:
            return Given(node, self.rest_of_item())  # "P(A | B)"
        if token is not None and token.kind == "text" and not isinstance(node, Words):
            if token.text.split()[0].lower() not in names.CONDITION_STARTS | names.FILLERS:
                raise ReadError("a statement")  # "x is odd" is not x
            return Given(node, self.rest_of_item())
        return node

    def _starts_condition(self, text: str) -> bool:
        """Whether an item such as "where k is an integer" or, after another, "any integer n" begins here."""
        first = text.split()[0]
        return first in names.CONDITION_STARTS or (self.at > 0 and first in ("any", "integer"))

    def chain(self) -> Node:
        """Read ``a < b = c``."""
        sides = [self._first_side()]
        ops: list[str] = []
        while (token := self.peek()) is not None:
            if token.kind == "rel":
                self.next()
                op, after = token.text, self.peek()
                if op in "<>" and after is not None and after.kind == "rel" and after.text == "=":
                    self.next()
                    op += "="
                ops.append(op)
            elif isinstance(sides[-1], Words) and not ops and self._numbered_label():
                number = self.next()
                self.next()
                label = Words(f"{sides[-1].text} {number.text}")
                return Relation(("=",), (label, self.chain()))
            elif isinstance(sides[-1], Words) and not ops and self.starts_factor():
                # "the area is 5": the words before a verb are a label.
                if (counted := self._counted(sides[-1].text)) is not None:
                    return counted
                said = sides[-1].text.lower().split()
                if said[-1] not in names.VERBS or names.DENIALS.intersection(said):
                    raise ReadError("words before a value")
                ops.append("=")
            else:
                break
            sides.append(self.ratio())
        if "equiv" in ops and not any(isinstance(side, Apply) and side.op == "pmod" for side in sides):
            ops = ["=" if op == "equiv" else op for op in ops]
        return Relation(tuple(ops), tuple(sides)) if ops else sides[0]

    def _counted(self, word: str) -> Node | None:
        """The number after one word that names what is counted ("dola 18"), if nothing follows it but a unit."""
        token = self.peek()
        if token is None or token.kind not in ("num", "money") or " " in word or not is_remark(word):
            return None
        start, value = self.at, self.ratio()
        if self.peek() is None and isinstance(value, Num | Quantity) and word.lower() not in names.BOUNDS | names.VERBS:
            return value if isinstance(value, Quantity) else Quantity(value, word)
        self.at = start
        return None

    def _first_side(self) -> Node:
        """Read the first side; filler words ("only") before a value are skipped."""
        side = self.ratio()
        while isinstance(side, Words) and self.starts_factor():
            if not set(side.text.lower().split()) <= names.FILLERS:
                break
            side = self.ratio()
        return side

    def _numbered_label(self) -> bool:
        """Whether a number and a colon come next, as in "Case 2: x = 5"."""
        token, after = self.peek(), self.peek(1)
        return token is not None and token.kind == "num" and after is not None and after.kind == "colon"

    def ratio(self) -> Node:
        """Read ``a : b : c``; after words, a colon makes them a label."""
        parts = [self.union()]
        while (token := self.peek()) is not None and token.kind == "colon" and not self.no_colon:
            self.next()
            if isinstance(parts[0], Words):
                return Relation(("=",), (parts[0], self.chain()))
            parts.append(self.union())
        return parts[0] if len(parts) == 1 else Apply("ratio", tuple(parts))

    def union(self) -> Node:
        """Read unions, intersections and differences of sets, from the left."""
        node = self.sum()
        while (token := self.peek()) is not None and token.kind == "set":
            self.next()
            node = Apply(token.text, (node, self.sum()))
        return node

    def sum(self) -> Node:
        """Read a sum of signed terms."""
        terms: list[Node] = []
        while (token := self.peek()) is not None:
            sign = token.text if token.kind == "op" and token.text in ("+", "-", "pm", "mp") else None
            if sign is None and terms:
                break
            if sign is not None:
                self.next()
            term = self.signed_term() if sign is not None else self.term()
            if sign in ("pm", "mp"):
                left = _add(terms) if terms else ZERO
                terms = [Apply(sign, (left, term))]
            else:
                terms.append(_negative(term) if sign == "-" else term)
        if not terms:
            raise ReadError("a value is missing at the end")
        return _add(terms)

    def signed_term(self) -> Node:
        """Read a term that may have a sign of its own, as in ``+ -3``."""
        token = self.peek()
        if token is not None and token.kind == "op" and token.text in ("+", "-"):
            self.next()
            term = self.signed_term()
            return _negative(term) if token.text == "-" else term
        return self.term()

    def term(self) -> Node:
        """Read a product: explicit, implicit, divisions, remainders, and the unit at its end."""
        node = self.factor()
        while (token := self.peek()) is not None:
            if token.kind == "op" and token.text == "*":
                self.next()
                node = _times(node, self.signed_factor())
            elif token.kind == "op" and token.text in ("/", "mod", "oplus", "otimes", "wedge"):
                self.next()
                right = self.signed_factor()
                if token.text == "/":
                    right = self._divisor(right)
                node = Apply("div" if token.text == "/" else token.text, (node, right))
            elif token.kind == "pmod":
                self.next()
                node = Apply("pmod", (node, self.argument()))
            elif token.kind == "text":
                if isinstance(node, Words):
                    break
                unit = self.unit()
                if unit is None:
                    break
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
                break
        return node

    def _divisor(self, right: Node) -> Node:
        """The divisor; with tight division, implicit factors right after it belong to it."""
        while self.tight_division and (token := self.peek()) is not None and not token.spaced and self.starts_factor():
            right = _times(right, self.factor())
        return right

    def rest_of_item(self) -> str:
        """The tokens up to the next separator or bracket, as text: a condition or remark that is not parsed."""
        words: list[str] = []
        depth = 0
        while (token := self.peek()) is not None:
            depth += {"open": 1, "close": -1}.get(token.kind, 0)
            if depth < 0 or (depth == 0 and token.kind in ("sep", "row", "end")):
                break
            self.next()
            words.append(_SOURCE.get((token.kind, token.text), _PREFIX.get(token.kind, "") + token.text))
        return " ".join(words)


_PREFIX = {"cmd": "\\", "fn": "\\", "big": "\\", "accent": "\\"}
_SOURCE = {("const", "oo"): "\\infty", ("const", "pi"): "\\pi"}


_FUNCTION_LETTERS = frozenset("fghFGHPQRSTEIVuyv")


def _applied(node: Node, token: Token, right: Node) -> Node | None:
    """``f(2)`` or ``I(0)`` as one name: a letter applied to a number is not a product; ``None`` for anything else."""
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
    """A bracket such as ``(k in Z)`` or ``(x != 0)`` after an expression states a condition."""
    if isinstance(node, Relation | Given):
        return "given"
    if isinstance(node, Words):
        return node.text
    return None


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


def _times(left: Node, right: Node) -> Node:
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        return Apply("together", (left, right))  # "3 hours 20 minutes"
    if isinstance(right, Quantity) and not isinstance(left, Quantity):
        return Quantity(Apply("mul", (left, right.value)), right.unit)
    if isinstance(left, Apply) and left.op == "mul":
        return Apply("mul", (*left.args, right))
    return Apply("mul", (left, right))
