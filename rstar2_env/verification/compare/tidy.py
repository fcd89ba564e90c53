"""Measures how far an expression has been simplified: its cost, its shape, and a normal form.

The normal form drops parts that do not change the value: factors of one, terms of zero, ``2 F / 2`` and ``x F / x``
(cancelled), ``e^(ln F)`` and ``sqrt(F^2)`` (replaced by ``F``). The normal form never expands brackets, so a product
and its expansion have different normal forms. Not covered: values (see ``equality``).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from rstar2_env.verification.read.nodes import Apply, Big, Const, Given, Node, Num, Quantity, Relation, children, key

_Monomial = tuple[tuple[str, Fraction], ...]
_Sum = dict[_Monomial, Fraction]

MAX_POWER = 1000
"""Largest exponent for which a power of a number is computed in the normal form."""


def tidy(node: Node) -> str:
    """Return the normal form of an expression or structure, as a text."""
    return _text(_sum(node))


def _sum(node: Node) -> _Sum:
    match node:
        case Quantity(value=inner) | Given(body=inner):
            return _sum(inner)
        case Num(value=value):
            return {(): value} if value else {}
        case Apply(op="add" | "mixed", args=args):
            total: _Sum = {}
            for arg in args:
                for monomial, factor in _sum(arg).items():
                    total[monomial] = total.get(monomial, Fraction(0)) + factor
            return {monomial: factor for monomial, factor in total.items() if factor}
        case Apply(op="neg", args=(arg,)):
            return {monomial: -factor for monomial, factor in _sum(arg).items()}
        case Apply(op="mul", args=args):
            return _product([(_sum(arg), Fraction(1)) for arg in args])
        case Apply(op="div" | "ratio", args=(top, bottom)):
            return _product([(_sum(top), Fraction(1)), (_sum(bottom), Fraction(-1))])
        case Apply(op="pow", args=(Const(name="e"), Apply(op="ln", args=(inner,)))):
            return _sum(inner)
        case Apply(op="ln", args=(Apply(op="pow", args=(Const(name="e"), inner)),)):
            return _sum(inner)
        case Apply(op="pow", args=(base, exponent)) if (power := number(exponent)) is not None:
            return _product([(_sum(base), power)])
        case Apply(op="root", args=(base, index)) if (power := number(index)) is not None and power:
            return _product([(_sum(base), 1 / power)])
        case _:
            parts = ",".join(_text(_sum(child)) for child in children(node))
            return {((f"{_name(node)}({parts})" if parts else key(node), Fraction(1)),): Fraction(1)}


def _name(node: Node) -> str:
    match node:
        case Apply(op=op):
            return op
        case Relation(ops=ops):
            return " ".join(ops)
        case Big(kind=kind, variable=variable):
            return f"{kind} {variable}"
        case _:
            return type(node).__name__


def number(node: Node) -> Fraction | None:
    """Return the value of an expression whose normal form is a rational number; ``None`` for other expressions."""
    found = _sum(node)
    return found.get((), Fraction(0)) if found.keys() <= {()} else None


def _product(factors: list[tuple[_Sum, Fraction]]) -> _Sum:
    """Return a product of powers as one term, without expanding sums; if only one sum is left, return that sum."""
    scale = Fraction(1)
    powers: dict[str, Fraction] = {}
    sums: dict[str, _Sum] = {}
    for base, power in factors:
        if not base:
            return {} if power > 0 else {(("undefined", Fraction(1)),): Fraction(1)}
        if len(base) > 1:
            name = _text(base)
            sums[name] = base
            powers[name] = powers.get(name, Fraction(0)) + power
            continue
        ((monomial, factor),) = base.items()
        if power.denominator == 1 and abs(power) <= MAX_POWER:
            scale *= factor**power.numerator
        elif factor != 1:
            powers[str(factor)] = powers.get(str(factor), Fraction(0)) + power
        for name, exponent in monomial:
            powers[name] = powers.get(name, Fraction(0)) + exponent * power
    if (turns := powers.get("#i", Fraction(0))).denominator == 1:
        scale *= -1 if turns % 4 > 1 else 1
        powers["#i"] = turns % 2
    left = {name: power for name, power in powers.items() if power}
    if len(left) == 1 and scale == 1:
        ((name, power),) = left.items()
        if power == 1 and name in sums:
            return sums[name]
    return {tuple(sorted(left.items())): scale}


def _text(found: _Sum) -> str:
    terms = (
        f"{factor}" + "".join(f"*{name}" if power == 1 else f"*{name}^{power}" for name, power in monomial)
        for monomial, factor in sorted(found.items())
    )
    return "[" + " + ".join(terms) + "]"


def light(node: Node) -> Node:
    """Return a copy of a tree without factors of one, terms of zero, first powers and double signs."""
    match node:
        case Quantity(value=inner) | Given(body=inner):
            return light(inner)
        case Apply(op="neg", args=(arg,)):
            inner = light(arg)
            if isinstance(inner, Apply) and inner.op == "neg":
                return inner.args[0]
            return Num(-inner.value, inner.decimals) if isinstance(inner, Num) else Apply("neg", (inner,))
        case Apply(op="add" | "mul" as op, args=args):
            unit = 0 if op == "add" else 1
            lit = map(light, args)
            flat = [one for arg in lit for one in (arg.args if isinstance(arg, Apply) and arg.op == op else (arg,))]
            kept = [arg for arg in flat if not (isinstance(arg, Num) and arg.value == unit)] or flat[:1]
            return kept[0] if len(kept) == 1 else Apply(op, tuple(kept))
        case Apply(op="div" | "pow" as op, args=(left, right)):
            one, other = light(left), light(right)
            return one if isinstance(other, Num) and other.value == 1 else Apply(op, (one, other))
        case Apply(op=op, args=args):
            return Apply(op, tuple(map(light, args)))
        case Relation(ops=ops, sides=sides):
            return Relation(ops, tuple(map(light, sides)))
        case _:
            return node


def shape(node: Node) -> Counter[str]:
    """Count the features of an expression that change if it is simplified, expanded, factored or rationalised.

    These features are: leaves; operations by name; terms of sums; sums inside a product, power or function; roots in a
    denominator; like terms or numbers that were not collected.
    """
    found: Counter[str] = Counter()
    _count(node, found, "", under=False)
    return found


def _count(node: Node, found: Counter[str], above: str, *, under: bool) -> None:
    name = node.op if isinstance(node, Apply) else type(node).__name__
    inner = children(node)
    if not inner:
        found["leaf"] += 1
    elif name == "add":
        found["term"] += len(inner)
        found["nested"] += above not in ("", "Relation", "Group", "neg")
        numbers = sum(isinstance(arg, Num) for arg in inner)
        found["uncollected"] += len(inner) - max(len(_sum(node)), 1) + max(numbers - 1, 0)
        found["undistributed"] += sum(_has_sum(arg) for arg in inner)
    elif name not in ("mul", "neg"):
        found[name] += 1
        found["under"] += under and name in ("root", "pow")
    for at, child in enumerate(inner):
        _count(child, found, name if name != "neg" else above, under=under or (name == "div" and at == 1))


def _has_sum(node: Node) -> bool:
    match node:
        case Apply(op="neg", args=(inner,)):
            return _has_sum(inner)
        case Apply(op="mul", args=args):
            return any(isinstance(arg, Apply) and arg.op == "add" for arg in args)
        case _:
            return False


def cost(found: Counter[str]) -> int:
    """Return the cost of an expression: the sum of the counts in its ``shape``, except "term", "nested" and "under"."""
    return sum(count for name, count in found.items() if name not in ("term", "nested", "under"))
