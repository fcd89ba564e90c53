"""One normal form for equivalent notations: words for numbers and sets, degrees as a unit, letters as units."""

from __future__ import annotations

import re
from fractions import Fraction

from rstar2_env.verification.read import units, words
from rstar2_env.verification.read.nodes import (
    Apply,
    Const,
    Given,
    Group,
    Matrix,
    Node,
    Num,
    Quantity,
    Sym,
    Words,
    rebuild,
    symbols,
    walk,
)

_CONSTANT_NAME = re.compile(r"[cCkK](?:_\d+)?|[ABD](?:_\d+)?|const")
_PARAMETER = re.compile(r"(?:[jklmnpqrstuv]|lambda|mu|alpha|beta)(?:_\d+)?")
_PHRASE_NODES: dict[str, Node] = {"#oo": Const("oo"), "#empty": Const("empty"), "#R": Const("R")}


def normal(node: Node) -> Node:
    """The tree with words for numbers and sets replaced by their values, and degrees and radians as operations."""

    def change(part: Node) -> Node | None:
        if isinstance(part, Words) and part.text:
            text = words.canonical(part.text)
            if text in _PHRASE_NODES:
                return _PHRASE_NODES[text]
            return Num(Fraction(text)) if text.isdecimal() and len(text) < 20 else Words(part.text)
        match part:
            case Apply(op="together", args=parts) | Group(open="", close="and", items=parts):
                return _together(tuple(normal(inner) for inner in parts))
        if isinstance(part, Quantity):
            unit = units.read_unit(part.unit)
            if unit is not None and unit.dimension == (("deg", 1),):
                return Apply("deg", (normal(part.value),))
            if unit is not None and not unit.dimension and part.unit != "%":
                inner = normal(part.value)
                return inner if unit.factor == 1 else Apply("mul", (inner, Num(unit.factor)))
        return None

    return rebuild(node, change)


def _together(parts: tuple[Node, ...]) -> Node | None:
    """``3 hours 20 minutes`` as one quantity; ``None`` where the units do not fit together."""
    first = parts[0]
    if not isinstance(first, Quantity) or (base := units.read_unit(first.unit)) is None:
        return None
    total: list[Node] = [first.value]
    seen = {base}
    for part in parts[1:]:
        unit = units.read_unit(part.unit) if isinstance(part, Quantity) else None
        if unit is None or unit.dimension != base.dimension or unit in seen or not isinstance(part, Quantity):
            return None
        seen.add(unit)
        total.append(Apply("mul", (part.value, Num(unit.factor / base.factor))))
    return Quantity(Apply("add", tuple(total)), first.unit)


def as_quantity(node: Node, other: Node) -> Node:
    """Read letters after a number as a unit (``5 m/s``) where the other side has a unit; ``5 m`` may be a product."""
    if not isinstance(node, Apply) or not isinstance(other, Quantity) or symbols(other):
        return node
    parts = _split_unit(node)
    if parts is None or parts[0] is None or units.read_unit(parts[1]) is None:
        return node
    return Quantity(parts[0], parts[1])


def _split_unit(node: Node) -> tuple[Node | None, str] | None:
    """The value (``None`` for 1) and the unit of a product or quotient of numbers and letters; else ``None``."""
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
        case Apply(op="div", args=(top, bottom)):
            over, under = _split_unit(top), _split_unit(bottom)
            if over is None or under is None or under[0] is not None:
                return None
            return over[0], f"{over[1]}/{under[1]}"
        case _:
            return None if symbols(node) else (node, "")


def is_constant_name(name: str) -> bool:
    """Whether a variable has a usual name of a constant of integration: ``C``, ``c_1``, ``A``."""
    return _CONSTANT_NAME.fullmatch(name) is not None


def has_parameters(gold: Node, answer: Node) -> bool:
    """Whether two answers look like families of solutions: with pi or degrees, in tuples, or under a condition."""
    return any(
        (isinstance(part, Const) and part.name == "pi")
        or (isinstance(part, Apply) and part.op == "deg")
        or isinstance(part, Given | Matrix)
        or (isinstance(part, Group) and part.open in ("(", "<"))
        for tree in (gold, answer)
        for part in walk(tree)
    )


def same_role(name: str, other: str, parameters: bool) -> bool:
    """Whether two variables may stand for each other.

    Args:
        name: A variable of one answer.
        other: A variable of the other.
        parameters: Whether the answers have parameters, so that ``n`` and ``k`` may mean the same.
    """
    if is_constant_name(name) and is_constant_name(other):
        return name[0] == "C" or other[0] == "C" or ("_" in name and "_" in other)
    return parameters and _PARAMETER.fullmatch(name) is not None and _PARAMETER.fullmatch(other) is not None
