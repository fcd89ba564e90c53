r"""Finds answers of the right value that leave work undone: not computed, not solved, or copied from the question.

If the gold answer is a number, the answer must be a literal (integer, decimal, fraction, percentage, scientific
notation); if the number is irrational, roots, powers, factorials, logarithms and constants are allowed too. Variables
that cancel, functions with a rational value, sums, integrals and limits are not allowed; if the gold answer isolates a
variable, the answer must do so too. Any kind of work that the gold answer leaves uncomputed is allowed.

An answer that equals the gold answer is also compared by value with every formula of the question. If it equals a
formula, the form of the gold answer shows how much work was required. If the gold answer is simpler than the formula,
the answer's cost (``tidy``) must be nearer to the cost of the gold answer than to that of the formula. If the gold
answer is in another form (expanded, factored, rationalised), the answer's shape must be nearer to the shape of the gold
answer than to that of the formula, after parts that do not change the value are removed. A solved inequality never
counts as copied from an unsolved one; an inequality counts as copied if it keeps an absolute value from an inequality
of the question. Not covered: formulas that the question describes in words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import gcd

from rstar2_env.verification.compare.equality import Same
from rstar2_env.verification.compare.relations import read_set
from rstar2_env.verification.compare.structure import along_axes, exact_side, items_of, without_condition
from rstar2_env.verification.compare.tidy import cost, light, shape, tidy
from rstar2_env.verification.read.names import APPROXIMATIONS
from rstar2_env.verification.read.nodes import (
    INEQUALITIES,
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
    children,
    key,
    symbols,
    walk,
    whole,
)
from rstar2_env.verification.read.normal import as_quantity
from rstar2_env.verification.read.readings import possible_readings
from rstar2_env.verification.values.ball import (
    Complex,
    NoValueError,
    TooLargeError,
    middle,
)
from rstar2_env.verification.values.evaluate import Evaluator, Notation

_CLASSES = {
    **dict.fromkeys(("fact", "fact2", "binom"), "factorial"),
    **dict.fromkeys(("ln", "log", "lg"), "logarithm"),
    **dict.fromkeys(("sin", "cos", "tan", "cot", "sec", "csc", "cis"), "trigonometry"),
    **dict.fromkeys(("asin", "acos", "atan", "acot", "asec", "acsc"), "inverse trigonometry"),
    **dict.fromkeys(("sinh", "cosh", "tanh", "coth", "sech", "csch"), "hyperbolic function"),
    **dict.fromkeys(("asinh", "acosh", "atanh"), "inverse hyperbolic function"),
    **dict.fromkeys(("abs", "norm"), "absolute value"),
    **dict.fromkeys(("max", "min", "floor", "ceil", "sgn"), "rounding or choice"),
    **dict.fromkeys(("gcd", "lcm", "mod", "det"), "operation on integers"),
    **dict.fromkeys(("add", "mul", "div", "mixed"), "arithmetic"),
    "pow": "power",
    "root": "root",
    "exp": "power",
}
"""The kind of each operation, such as "trigonometry" for ``sin``. If the gold answer leaves an operation uncomputed,
the answer may leave any operation of the same kind uncomputed."""

_FREE = frozenset({"arithmetic", "power", "root", "factorial", "logarithm"})
"""Kinds of work that an answer may leave uncomputed if the gold answer is irrational."""

_BITS = 256
_NOTATION = frozenset({"neg", "deg", "rad", "base", "ratio", "pm", "mp", "conj", "cases", "pmod"})
_DRESSES = frozenset({"base", "cases", "conj", "pmod"})
"""Notations that can disguise an expression without changing its value; an answer may use them inside an expression
only if the gold answer does."""

_SAYS = {
    "root": {"power", "absolute value"},
    "absolute value": {"root", "cases"},
    "rounding or choice": {"cases"},
    "logarithm": {"absolute value"},
    "factorial": {"power"},
    "cases": {"absolute value", "rounding or choice"},
}
"""For each kind of operation in the gold answer, other kinds with which an equal answer can be written."""

_BENT = frozenset({"absolute value", "rounding or choice", "root", "operation on integers"})
_LOOSE = frozenset({"arithmetic", "power", "root"})


def work_left(gold: Node, answer: Node, undone: str) -> str | None:
    """Return the kind of work that an answer, but not the gold answer, leaves uncomputed; ``None`` if there is none.

    Args:
        gold: The gold answer.
        answer: The answer, equal to the gold answer in value.
        undone: How much work may be left: "none", "arithmetic" (sums, products, powers, roots) or "any".
    """
    if undone == "any":
        return None
    allowed = _work(gold)
    if undone == "arithmetic":
        allowed |= _LOOSE
    if any(isinstance(part, Big) and part.kind not in allowed for value in _values(answer) for part in walk(value)):
        return "sum, integral or limit"
    if _unsolved(gold, answer):
        return "equation"
    known = symbols(gold)
    golds = [part for part in _values(gold) if not isinstance(part, Words)]
    if golds and not any(symbols(part) for part in golds):
        for part in _values(answer):
            part = as_quantity(part, golds[0], bare=True)
            part = part.value if isinstance(part, Quantity) else part
            if along_axes(part, len(golds)) is not None or (isinstance(gold, Relation) and "equiv" in gold.ops):
                continue
            if symbols(part) and isinstance(part, Apply) and not isinstance(gold, Quantity):
                return None if symbols(part) < known else "variable"  # xy = 6 solved for y
            if (work := _of_constant(golds, part, allowed)) is not None:
                return work
        return None
    named = "arithmetic" not in allowed and {*map(type, golds)} == {Sym}
    for part in _values(answer):
        if named and isinstance(part, Apply) and (_kind(part) in _LOOSE or part.op in _NOTATION):
            return "arithmetic"  # "2P/2" is P with work to do
        if len(symbols(part) - known) > len(known - symbols(part)) and isinstance(part, Apply):
            return "variable"
        if (work := _of_function(part, allowed)) is not None:
            return work
        if shape(part)["uncollected"] and not any(shape(one)["uncollected"] for one in golds):
            return "like terms"
    return None


def _work(node: Node) -> set[str]:
    """Return the kinds of operations in an answer, and other kinds that can state the same value (``_SAYS``)."""
    found = {_kind(part) for part in walk(node) if isinstance(part, Apply | Big) and not is_literal(part)}
    if found & {"trigonometry", "power"} and _is_imaginary(node):
        found |= {"trigonometry", "power"}
    return found.union(*(_SAYS.get(kind, ()) for kind in found))


def _kind(part: Apply | Big) -> str:
    """Return the kind of an operation (see ``_CLASSES``); a power with a fractional exponent is a "root"."""
    if isinstance(part, Big):
        return part.kind
    if part.op == "pow" and whole(part.args[1]) is None and part.args[0] != Const("e"):
        return "root"
    return _CLASSES.get(part.op, part.op)


def _values(node: Node) -> list[Node]:
    """Return the expressions in lists, sets, tuples and matrices of an answer, without labels and units."""
    return [entry for item in items_of(without_condition(node)) for entry in _entries(item.value)]


def _entries(node: Node) -> list[Node]:
    node = without_condition(node)
    inner: Sequence[Node]
    match node:
        case Quantity(value=Num(value=value, decimals=decimals), unit="%"):
            return [Num(value / 100, (decimals or 0) + 2)]
        case Apply(op="mul" | "div", args=args) if sum(isinstance(arg, BracketGroup | Matrix) for arg in args) == 1:
            inner = [arg for arg in args if isinstance(arg, BracketGroup | Matrix)]
        case Relation(ops=ops, sides=sides) if set(ops) <= {"=", "~"} and not symbols(sides[-1]):
            inner = [sides[ops.index("~") if "~" in ops else -1]]
        case Relation() if (solved := read_set(node)) is not None and solved.variable is not None:
            inner = [end for piece in solved.pieces for end in (piece.low, piece.high)]  # "|x| < 3" states -3 and 3
        case (
            Quantity()
            | BracketGroup()
            | Matrix()
            | Relation()
            | Apply(op="union" | "inter" | "diff" | "pm" | "mp" | "pmod")
        ):
            inner = children(node)
        case Builder():
            return []
        case _:
            return [node]
    return [entry for part in inner for entry in _entries(part)]


def is_literal(node: Node) -> bool:
    """Return whether a node is a literal: an integer, decimal, fraction, mixed number, complex number or a × 10^n."""
    match node:
        case Num() | Const(name="oo" | "i") | Apply(op="mixed" | "base"):
            return True
        case Apply(op="div", args=(top, bottom)):
            return whole(top) is not None and whole(bottom) is not None
        case Apply(op="neg" | "deg" | "rad" | "ratio", args=terms):
            return all(map(is_literal, terms))
        case Apply(op="pow", args=(Num(value=10), exponent)):
            return whole(exponent) is not None
        case Apply(op="mul", args=(Num(), Apply(op="pow") as inner) | (inner, Const(name="i"))):
            return is_literal(inner)
        case Apply(op="add", args=(one, other)):
            return _is_imaginary(one) != _is_imaginary(other) and is_literal(one) and is_literal(other)
        case _:
            return False


def _is_imaginary(node: Node) -> bool:
    return any(part == Const("i") for part in walk(node))


def _quotients(node: Node) -> Iterator[tuple[int, int]]:
    """Iterate over the numerators and denominators of the fractions and ratios whose terms are whole numbers."""
    for part in walk(node):
        match part:
            case Apply(op="div" | "ratio", args=(over, under)):
                top, bottom = whole(over), whole(under)
                if top is not None and bottom:
                    yield abs(top), abs(bottom)


def _undivided(golds: Sequence[Node], answer: Node) -> bool:
    """Whether a fraction of the answer is not in lowest terms, and no fraction of the gold answer has its value."""
    stated = {Fraction(*terms) for gold in golds for terms in _quotients(gold)}
    return any(gcd(*terms) > 1 and Fraction(*terms) not in stated for terms in _quotients(answer))


def _of_constant(golds: Sequence[Node], answer: Node, allowed: set[str]) -> str | None:
    """Return a kind of work outside ``allowed`` that a constant answer leaves uncomputed; ``None`` if there is none."""
    if "arithmetic" not in allowed and _undivided(golds, answer):
        return "division"
    if is_literal(answer):
        return None
    if not isinstance(answer, Apply) or (answer.op in _NOTATION and all(map(is_literal, answer.args))):
        return None
    rational = _rational(answer)
    stated = all(is_literal(gold) and (rational or not may_be_rounded(gold)) for gold in golds)
    free = allowed if stated else allowed | ({"arithmetic"} if rational else _FREE)
    parts = (part for part in walk(answer) if isinstance(part, Apply) and part.op not in _NOTATION)
    left = (_kind(part) for part in parts if not is_literal(part))
    return next((kind for kind in left if kind not in free), None) or _of_function(answer, allowed)


_ROUNDS = re.compile(
    rf"\b(?:{'|'.join(sorted(APPROXIMATIONS - {'about'}))}|(?:about|around) (?:how|what)|estimate|rounded|nearest"
    r"|correct to|round(?: off| up| down)? (?:your|the|to|it|answers?)|significant|decimal places?)\b",
    re.IGNORECASE,
)
"""Pattern of a question that asks for a rounded value."""


def may_be_rounded(gold: Node, question: str | None = None) -> bool:
    """Return whether a gold answer may be a rounded value.

    This holds if the gold answer has a decimal, degrees or scientific notation, or if the question asks for a rounded
    value.

    Args:
        gold: The gold answer.
        question: The question; ``None`` if it is not known.
    """
    if question and _ROUNDS.search(question):
        return True
    return any(part.decimals if isinstance(part, Num) else _is_measured(part) for part in walk(gold))


def _is_measured(node: Node) -> bool:
    """Whether a node is an angle in degrees, or a number in scientific notation."""
    match node:
        case Apply(op="deg") | Apply(op="mul", args=(Num(), Apply(op="pow", args=(Num(value=10), _)))):
            return True
    return False


def _of_function(answer: Node, allowed: set[str]) -> str | None:
    """Return the kind of the first function that still has to be computed in an answer; ``None`` if there is none.

    A function of constants must be evaluated if its value is rational, such as ``sin(pi/6)``. Of the functions of
    variables, only those in ``_BENT``, such as ``|x|``, must not stay in an answer. The notations in ``_DRESSES`` count
    as functions; arithmetic and powers do not. Kinds in ``allowed`` do not count either: the gold answer leaves them
    uncomputed too.
    """
    for part in walk(answer):
        if isinstance(part, Apply) and part.op in _DRESSES - allowed and not is_literal(answer):
            return part.op
        if not isinstance(part, Apply) or part.op in _NOTATION:
            continue
        kind = _kind(part)
        if kind in allowed or kind in ("arithmetic", "power") or kind not in _CLASSES.values():
            continue
        if symbols(part):
            if kind in _BENT:
                return kind
        elif kind == "operation on integers" or _rational(part):
            return kind
    return None


def _rational(node: Node) -> bool:
    """Return whether a constant is rational, or cannot be distinguished from a fraction with a small denominator."""
    try:
        value = Evaluator({}, _BITS, Notation(_is_imaginary(node))).value(node)
    except TooLargeError:
        return True
    except NoValueError:
        return False
    exact = map(middle, (value.real, value.imag) if isinstance(value, Complex) else (value,))
    return all(abs(one - one.limit_denominator(10**9)) < Fraction(1, 1 << _BITS // 2) for one in exact)


def _unsolved(gold: Node, answer: Node) -> bool:
    """Whether the gold answer isolates a variable and the answer does not."""
    wanted = [item for item in items_of(without_condition(gold)) if isinstance(item.label, Sym)]
    given = [item.value for item in items_of(without_condition(answer))]
    if wanted and not any(symbols(item.value) for item in wanted):
        return any(isinstance(value, Relation) and "=" in value.ops and symbols(value) for value in given)
    if (solved := read_set(gold)) is None or solved.variable is None or not isinstance(answer, Relation):
        return False
    return any(isinstance(value, Relation) and read_set(value) is None for value in given)


MAX_FORMULAS = 40
"""Maximum number of formulas of a question with which an answer is compared."""

MAX_FORMULA_CHARS = 400
"""Length of the longest formula that is compared, in characters."""

MAX_PAIRS = 8
"""Largest number of items of an answer for which every answer item is compared with every gold item."""

_MATH = re.compile(
    r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\\\((.+?)\\\)|(?<!\\)\$(.+?)(?<!\\)\$"
    r"|\\begin\{(?:equation|align|gather)\*?\}(.+?)\\end\{(?:equation|align|gather)\*?\}",
    re.DOTALL,
)
_PLAIN = re.compile(r"(?:\\[a-zA-Z]+|(?<![a-zA-Z])[a-zA-Z](?![a-zA-Z])|[-\d.+*/^_=<>≤≥≠(){}\[\]|!√π²³×·÷ ])+")
_BUSY = re.compile(r"[\da-zA-Z)}]\s*[-+*/^=<>≤≥≠({|!√²³×·÷\\]|\.\d")
_SAYS_BARS = re.compile(r"\babs(?:olute value|\s*\()")
"""Pattern of words for an absolute value, in a question that does not write it with bars."""


@lru_cache(maxsize=256)
def formulas(question: str) -> tuple[Node, ...]:
    """Return the formulas of a question (in math mode or plain text), and the sides or items of each formula."""
    texts = [next(part for part in match.groups() if part is not None) for match in _MATH.finditer(question)]
    texts += [match[0] for match in _PLAIN.finditer(_MATH.sub(" ; ", question)) if _BUSY.search(match[0])]
    found: dict[str, Node] = {}
    for text in texts[-MAX_FORMULAS:]:
        text = text.strip(" .,;:?\n")
        trees = possible_readings(text)[:2] if len(text) <= MAX_FORMULA_CHARS else ()
        for part in (part for tree in trees for part in _parts(tree)):
            found.setdefault(key(part), part)
    return tuple(found.values())[:MAX_FORMULAS]


def _parts(tree: Node) -> Iterator[Node]:
    yield tree
    if isinstance(tree, Relation) or (isinstance(tree, BracketGroup) and not tree.open):
        for side in children(tree):
            yield from _parts(side)


def echoes(gold: Node, answer: Node, question: str, same: Same) -> bool:
    """Return whether an answer that equals the gold answer only repeats a formula of the question.

    Args:
        gold: The gold answer.
        answer: The answer.
        question: The question.
        same: Function that compares two answers by value.
    """
    if gold == answer or key(gold) == key(answer):
        return False
    stated = [formula for formula in formulas(question) if not _is_atom(formula)]
    if _keeps_bars(gold, answer, stated, question):
        return True
    converts = len(stated) == 1 and is_literal(stated[0])
    return any(
        _same(formula, part, same) and not _solves(part, formula) and _restates(wanted, part, formula)
        for wanted, part in _pairs(gold, answer, same)
        # The answer may be a number of the question, unless that is its only formula: then the task is to convert it.
        if not _is_atom(part) and key(wanted) != key(part) and (converts or not is_literal(part))
        for formula in stated
    )


def _keeps_bars(gold: Node, answer: Node, stated: Sequence[Node], question: str) -> bool:
    """Whether an answer, but not the gold answer, keeps an absolute value of an inequality in the question."""
    kept = _in_bars(answer) - _in_bars(gold)
    if not kept or read_set(answer) is None:
        return False
    bars = (_in_bars(formula) for formula in stated if _has_inequality(formula))
    return any(map(kept.intersection, bars)) or _SAYS_BARS.search(question) is not None


def _in_bars(node: Node) -> frozenset[str]:
    """Return the variables in the absolute values of a node."""
    bars = [part for part in walk(node) if isinstance(part, Apply) and part.op == "abs"]
    return frozenset().union(*map(symbols, bars))


def _solves(answer: Node, formula: Node) -> bool:
    """Whether an answer is an interval or a solved inequality, while the formula has an unsolved inequality."""
    return _has_inequality(formula) and _is_solved(answer) and not _is_solved(formula)


def _has_inequality(node: Node) -> bool:
    return any(isinstance(part, Relation) and not INEQUALITIES.isdisjoint(part.ops) for part in walk(node))


def _is_solved(node: Node) -> bool:
    found = read_set(node, as_set=True)
    alone = found is not None and (found.variable is None or found.variable.startswith("'"))
    return alone and not _in_bars(node)


def _is_atom(node: Node) -> bool:
    return isinstance(node, Sym | Words | Const) or (isinstance(node, Num) and node.decimals is None)


def _same(formula: Node, part: Node, same: Same) -> bool:
    try:
        return key(formula) == key(part) or same(formula, part) is True
    except TooLargeError:
        return False


def _pairs(gold: Node, answer: Node, same: Same) -> Iterator[tuple[Node, Node]]:
    """Yield pairs of a gold part and a part of the answer that equals it: the whole answers, then their items."""
    yield gold, answer
    decimal = gold.sides[-1] if isinstance(gold, Relation) and "~" in gold.ops else gold  # such as "F ~ 0.891"
    wanted, given = _items(decimal), _items(answer)
    if len(wanted) == len(given) == 1 and (wanted, given) != ([gold], [answer]):
        yield wanted[0], given[0]
    elif len(wanted) == len(given) <= MAX_PAIRS:
        for part in given:
            yield from ((one, part) for one in wanted if _same(one, part, same))


def _items(node: Node) -> list[Node]:
    values = [exact_side(item.value)[0] for item in items_of(node)]
    if len(values) == 1 and isinstance(values[0], BracketGroup | Matrix):
        return list(children(values[0]))
    return values


def _restates(gold: Node, answer: Node, formula: Node) -> bool:
    """Whether an answer's form is nearer to a formula of the question than to the form of the gold answer.

    The gold answer, the answer and the formula must have the same value.
    """
    gold, answer, formula = light(gold), light(answer), light(formula)
    if key(gold) in (key(answer), key(formula)):
        return False
    if key(answer) == key(formula):
        return True
    wanted, given, stated = shape(gold), shape(answer), shape(formula)
    if cost(wanted) < cost(stated):
        return 2 * cost(given) > cost(wanted) + cost(stated)
    bare, dressed = tidy(answer), tidy(formula)
    return bare == dressed or (bare != tidy(gold) and _distance(given, stated) <= _distance(given, wanted))


def _distance(one: Counter[str], other: Counter[str]) -> int:
    return sum(abs(one[name] - other[name]) for name in one.keys() | other.keys())
