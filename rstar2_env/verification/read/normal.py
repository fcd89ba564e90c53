"""Converts equivalent notations to one: number words, names of sets, degrees, unit letters, piecewise functions.

A piecewise function, such as LaTeX ``cases`` and "n if n is odd, n/2 otherwise", becomes ``cases(value, condition,
value, condition, …)``. Each condition is a relation, several relations joined by "and" or "or", or the word ``else``.
A layout without conditions, such as a system of equations, becomes a list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fractions import Fraction

from rstar2_env.verification.read import names, units, vocabulary, words
from rstar2_env.verification.read.lexer import ReadError
from rstar2_env.verification.read.nodes import (
    ZERO,
    Apply,
    BracketGroup,
    Const,
    Given,
    Matrix,
    Node,
    Num,
    Quantity,
    Relation,
    Sym,
    Words,
    children,
    rebuild,
    symbols,
    walk,
)

_CONSTANT_NAME = re.compile(r"[cCkKABD](?:_\d+)?|const")
"""Pattern of the usual names of a constant of integration."""
_PARAMETER = re.compile(r"(?:[jklmnpqt]|lambda|mu)(?:_\d+)?")
_INTEGER = re.compile(r"\bin\b\s*Z|integer|\bwhole\b|Z")
_PHRASE_NODES: dict[str, Node] = {
    **{"#oo": Const("oo"), "#empty": Const("empty"), "#R": Const("R"), "#Z": Const("Z")},
    "#R+": BracketGroup("(", ")", (ZERO, Const("oo"))),
    "#R-": BracketGroup("(", ")", (Apply("neg", (Const("oo"),)), ZERO)),
    "#R0": BracketGroup("[", ")", (ZERO, Const("oo"))),
}


def normal(node: Node, read: Callable[[str], Node]) -> Node:
    """Return a tree in which equivalent notations have one form.

    Words become their values, degrees and radians become operations, and each piecewise function becomes one node.

    Args:
        node: The tree.
        read: Function that parses the text of a condition.
    """

    def change(part: Node) -> Node | None:
        if (made := as_cases(part, read)) is not None:
            return rebuild(made, change)
        match part:
            case Words(text=text) if text:
                return _word(text)
            case Apply(op="together", args=parts) | BracketGroup(open="", close="and", items=parts):
                return _together(tuple(rebuild(inner, change) for inner in parts))
            case Apply(op="cis", args=(angle,)):
                angle = rebuild(angle, change)
                return Apply("add", (Apply("cos", (angle,)), Apply("mul", (Const("i"), Apply("sin", (angle,))))))
            case Apply(op="neg", args=(Apply(op="base", args=(Num(value=digits), base)),)):
                return Apply("base", (Num(-digits), base))
            case Apply(op="div", args=(Quantity(value=value, unit=unit), Words(text=text))):
                return Quantity(rebuild(value, change), f"{unit}/{text}")
            case Apply(op="mul", args=(Sym(name=name), BracketGroup(open="(", items=items) as point)):
                named = len(name) == 1 and name.isupper() and len(items) > 1 and not symbols(point)
                return Relation(("=",), (Sym(name), rebuild(point, change))) if named else None
            case BracketGroup(open="[", items=(BracketGroup(open="[" | "", items=first), *_) as rows) if len(rows) > 1:
                lists = [row for row in rows if isinstance(row, BracketGroup) and row.open in "["]
                if [len(row.items) for row in lists] == [len(first)] * len(rows):
                    return Matrix(tuple(tuple(rebuild(one, change) for one in children(row)) for row in rows))
            case Quantity(value=value, unit=unit):
                return _quantity(rebuild(value, change), unit)
        return None

    return rebuild(node, change)


def _word(text: str) -> Node:
    phrase = words.canonical(text)
    if phrase in _PHRASE_NODES:
        return _PHRASE_NODES[phrase]
    number = words.number(text)
    return Words(text) if number is None else Num(Fraction(number))


def _quantity(value: Node, unit: str) -> Node:
    """Return a value with its unit; scales such as "million" multiply it, degrees and radians become operations."""
    first, _, rest = unit.partition(" ")
    if (scale := words.SCALES.get(first.lower().removesuffix("s"))) is not None:
        if isinstance(value, Quantity):
            return Quantity(_quantity(value.value, first), f"{value.unit} {rest}".strip())  # such as "$1.5 million"
        value = Num(value.value * scale) if isinstance(value, Num) else Apply("mul", (value, Num(Fraction(scale))))
        return _quantity(value, rest.removeprefix("of ")) if rest else value
    if first.lower() in names.PERCENT_WORDS and rest:
        return Quantity(Quantity(value, "%"), rest)  # such as "15 percent increase"
    known = units.read_unit(unit)
    if known is None and (measure := vocabulary.before_remark(unit)) is not None:
        return _quantity(value, measure)
    if known == units.DEGREE:
        return Apply("deg", (value,))
    is_radian = unit != "%" and known == units.Unit(Fraction(1), ())
    return Apply("rad", (value,)) if is_radian else Quantity(value, unit)


def _together(parts: tuple[Node, ...]) -> Node | None:
    """Return ``3 hours 20 minutes`` as one quantity; ``None`` if the units differ in dimension or are repeated."""
    quantities = [part for part in parts if isinstance(part, Quantity)]
    found = [unit for part in quantities if (unit := units.read_unit(part.unit)) is not None]
    if len({*found}) != len(parts) or len({unit.dimension for unit in found}) != 1:
        return None
    terms = [(part.value, unit.factor / found[0].factor) for part, unit in zip(quantities, found, strict=True)]
    values = [value.value * size for value, size in terms if isinstance(value, Num)]
    if len(values) == len(terms):
        return Quantity(Num(sum(values, Fraction(0))), quantities[0].unit)
    return Quantity(Apply("add", tuple(Apply("mul", (value, Num(size))) for value, size in terms)), quantities[0].unit)


def as_quantity(node: Node, other: Node, *, bare: bool = False) -> Node:
    """Convert letters after a number to a unit (``5 m/s``) if the other answer has a unit; else return the node.

    If the other answer has no unit, ``5 m`` may be a product.

    Args:
        node: The answer in which letters may be a unit.
        other: The answer with which it is compared.
        bare: Whether letters become a unit even if the other answer has no unit.
    """
    beside = other.unit if isinstance(other, Quantity) else None
    if not isinstance(node, Apply | Quantity) or not symbols(node) or symbols(other) or not (bare or beside):
        return node
    parts = _split_unit(node)
    if parts is not None and parts[1] in ("C", "F") and beside and units.is_temperature(beside):
        parts = parts[0], f"deg{parts[1]}"
    if parts is None or parts[0] is None or units.read_unit(parts[1]) is None:
        return node
    return Quantity(parts[0], parts[1])


def _split_unit(node: Node) -> tuple[Node | None, str] | None:
    """Split a product or quotient of numbers and letters into its value (``None`` for 1) and its unit.

    Returns:
        ``None`` for any other node.
    """
    match node:
        case Sym(name=name) if len(name) == 1:
            return None, name
        case Apply(op="pow", args=(Sym(name=name), Num(value=power))) if len(name) == 1 and power.denominator == 1:
            return None, f"{name}^{power}"
        case Apply(op="mul", args=args):
            found = [_split_unit(arg) for arg in args]
            values = tuple(part[0] for part in found if part is not None and part[0] is not None)
            if any(part is None for part in found) or not values:
                return None
            unit = " ".join(part[1] for part in found if part is not None and part[1])
            return (values[0] if len(values) == 1 else Apply("mul", values)), unit
        case Apply(op="neg", args=(inner,)) if (part := _split_unit(inner)) is not None and part[0] is not None:
            return Apply("neg", (part[0],)), part[1]
        case Quantity(value=Apply() as inner, unit=unit) if (part := _split_unit(inner)) is not None and part[1]:
            return part[0], f"{part[1]} {unit}"  # "1.2 g cm^{-3}": only "cm" is a unit without context
        case Apply(op="div", args=(top, bottom)):
            over, under = _split_unit(top), _split_unit(bottom)
            if over is None or under is None or under[0] is not None:
                return None
            return over[0], f"{over[1]}/{under[1]}"
        case _:
            return None if symbols(node) else (node, "")


def is_parametric(gold: Node, answer: Node) -> bool:
    """Whether two answers are tuples or vectors, whose letters may be parameters (``(1 + t, 2 - t)``)."""
    parts = [*walk(gold), *walk(answer)]
    return any(
        isinstance(part, Matrix) or (isinstance(part, BracketGroup) and part.open in ("(", "<")) for part in parts
    )


def role(name: str, node: Node) -> str | None:
    """Return the role of a variable that another letter may replace; ``None`` if the variable's name matters.

    The role is "constant" if the variable is added to, or multiplies, a term with other variables (``x^2 + C``, ``C_1
    e^x``), and "integer" if it is declared as an integer, or is a factor of pi or degrees (``k pi``).
    """
    if any(_declares(part, name) for part in walk(node)):
        return "integer"
    if _PARAMETER.fullmatch(name) and _is_loose(name, node, _has_turn, added=False):
        return "integer"
    others = any(_CONSTANT_NAME.fullmatch(other) is None for other in symbols(node))
    if not others or _CONSTANT_NAME.fullmatch(name) is None:
        return None
    return "constant" if _is_loose(name, node, lambda rest: bool(symbols(rest) - {name}), added=True) else None


def _declares(node: Node, name: str) -> bool:
    """Whether a node declares a variable as an integer."""
    match node:
        case Given(condition=text):
            return name in text and _INTEGER.search(text) is not None
        case Relation(ops=("in",), sides=(Sym(name=stated), Const(name="Z" | "N"))):
            return stated == name
        case _:
            return False


def _has_turn(node: Node) -> bool:
    return any(part == Const("pi") or (isinstance(part, Apply) and part.op == "deg") for part in walk(node))


def _is_loose(name: str, node: Node, enough: Callable[[Node], bool], *, added: bool) -> bool:
    """Whether a variable occurs only as a plain factor or term, never inside a function.

    Args:
        name: Name of the variable.
        node: The tree.
        enough: Returns whether a variable may be a factor of the given product.
        added: Whether the variable may also be a term of a sum.
    """
    if name not in symbols(node):
        return True
    match node:
        case Sym():
            return added
        case Apply(op="add" | "pm" | "neg" | "deg", args=args):
            known = enough(node)
            return all(_is_loose(name, arg, lambda rest: known or enough(rest), added=added) for arg in args)
        case Apply(op="mul" | "div", args=args):
            above = enough(node) and not (node.op == "div" and name in symbols(args[1]))
            return above and all(_is_loose(name, arg, lambda rest: True, added=True) for arg in args)
        case Apply(op=op, args=(Apply(op="add") as inner,)) if op != "abs":
            return added and len(symbols(inner)) > 1 and _is_loose(name, inner, enough, added=True)  # arcsin(ln x + C)
        case Relation() | BracketGroup() | Matrix() | Given():
            return all(_is_loose(name, child, enough, added=added) for child in children(node))
        case _:
            return False


ELSE = Const("else")
"""The node for the condition "otherwise" of the last case."""

_START = re.compile(r"\s*(?:if|for|when|where|provided|given|on)\b\s*", re.IGNORECASE)
_ELSE = re.compile(r"\s*(?:otherwise|else|elsewhere|in all other cases)\s*\.?", re.IGNORECASE)
_PARITY = re.compile(r"\s*([a-zA-Z])\s*(?:is)?\s*(?:an)?\s*(odd|even)(?:\s+(?:integer|number))?\s*")

Read = Callable[[str], Node]


def as_cases(node: Node, read: Read) -> Node | None:
    """Convert a node to one ``cases`` node; return ``None`` if it is not a piecewise function.

    Args:
        node: A layout of rows, or a list without brackets whose items have conditions.
        read: Function that parses the text of a condition.
    """
    if not isinstance(node, BracketGroup) or node.open not in ("", "cases"):
        return None
    label: Node | None = None
    parts: list[Node] = []
    rows = list(node.items)
    match rows:
        case [Given(body=Relation(ops=("=",), sides=(label, value)), condition=text), *rest] if node.open == "":
            rows = [Given(value, text), *rest]  # "f(x) = x if x > 0": the label belongs to all cases
    for row in rows:
        value, condition = _split(row, read)
        if condition is None:
            return BracketGroup("", "", node.items) if node.open == "cases" else None
        parts += [value, condition]
    if len(parts) < 4:
        return None
    made = Apply("cases", tuple(parts))
    return made if label is None else Relation(("=",), (label, made))


def _split(row: Node, read: Read) -> tuple[Node, Node | None]:
    match row:
        case BracketGroup(open="row", items=(value, Given(body=Words(text=""), condition=text) | Words(text=text))):
            return value, _condition(text, read)
        case BracketGroup(open="row", items=(value, *conditions)) if _are_relations(conditions):
            return value, conditions[0] if len(conditions) == 1 else BracketGroup("", "and", tuple(conditions))
        case Given(body=value, condition=text) if value != Words(""):
            return value, _condition(text, read)
        case Quantity(value=value, unit=unit) if _ELSE.fullmatch(unit):
            return value, ELSE
        case _:
            return row, None


def _condition(text: str, read: Read) -> Node | None:
    if _ELSE.fullmatch(text):
        return ELSE
    text = _START.sub("", text, count=1)
    if (parity := _PARITY.fullmatch(text)) is not None:
        rest = Apply("mod", (Sym(parity[1]), Num(Fraction(2))))
        return Relation(("=",), (rest, Num(Fraction(parity[2] == "odd"))))
    try:
        found = read(text)
    except ReadError:
        return None
    parts = found.items if isinstance(found, BracketGroup) and found.open == "" else (found,)
    return found if _are_relations(parts) else None


def _are_relations(nodes: Iterable[Node]) -> bool:
    return all(isinstance(node, Relation) for node in nodes)
