"""Compares expressions with SymPy, the last resort if evaluation cannot decide (integrals, limits, infinite sums).

SymPy objects are built node by node from parsed trees; no text reaches SymPy's parsers, which evaluate code. Equality
is exact: the difference simplifies to zero. math-verify is not used for verdicts since it rounds (``10^{-30}`` equals
``10^{-31}`` there); it runs only in benchmarks. This module runs only in a worker, which may be killed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from rstar2_env.verification.read.nodes import Apply, Big, Const, Node, Num, Sym, walk, whole

_notify: Callable[[str], None] | None = None

_FUNCTIONS = {
    name: name
    for name in (
        *("sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth", "sech", "csch"),
        *("asin", "acos", "atan", "acot", "asec", "acsc", "asinh", "acosh", "atanh", "exp", "floor"),
    )
} | {
    **{"ln": "log", "abs": "Abs", "fact": "factorial", "fact2": "factorial2", "binom": "binomial", "ceil": "ceiling"},
    **{"add": "Add", "mixed": "Add", "mul": "Mul", "pow": "Pow", "root": "root", "log": "log", "deg": "rad"},
}
"""SymPy's name of each operation."""
_CONSTANTS = {"pi": "pi", "e": "E", "i": "I", "oo": "oo"}
"""SymPy's name of each constant."""


class _UnknownError(Exception):
    """The tree contains a node that this module cannot translate to SymPy."""


def on_load(notify: Callable[[str], None]) -> None:
    """Set the callback that is called with "loading" and "loaded" around the first import of a large library."""
    global _notify
    _notify = notify


def load(name: str) -> Any:
    """Import a library; before the first import, make the parent process pause the deadline (see ``on_load``)."""
    if name in sys.modules or _notify is None:
        return importlib.import_module(name)
    _notify("loading")
    module = importlib.import_module(name)
    _notify("loaded")
    return module


def same_symbolic(gold: Node, answer: Node) -> bool | None:
    """Return whether two expressions are equal according to SymPy; ``None`` if it cannot decide."""
    if not any(isinstance(part, Big) for part in (*walk(gold), *walk(answer))):
        return None  # evaluation can decide everything else
    sympy = load("sympy")
    try:
        difference = (_build(sympy, gold) - _build(sympy, answer)).doit()
        if difference.has(sympy.Sum, sympy.Integral, sympy.Limit, sympy.Product, sympy.nan, sympy.zoo, sympy.oo):
            return None
        return bool(sympy.simplify(difference) == 0)
    except (_UnknownError, TypeError, ValueError, AttributeError, NotImplementedError, ArithmeticError):
        return None


def solved(op: str, left: Node, right: Node, name: str) -> list[tuple[float, float, bool, bool]] | None:
    """Return the real solutions of an inequality in one variable as intervals, found by SymPy.

    Args:
        op: One of ``<``, ``<=``, ``>``, ``>=``, ``!=``.
        left: The left side: powers, quotients, roots and absolute values of the variable.
        right: The right side.
        name: The variable.

    Returns:
        For each interval its ends and whether it contains them; ``None`` if SymPy cannot solve the inequality.
    """
    if not all(_is_algebraic(part) for side in (left, right) for part in walk(side)):
        return None
    sympy = load("sympy")
    try:
        relation = sympy.Rel(_build(sympy, left), _build(sympy, right), op)
        found = sympy.solve_univariate_inequality(relation, sympy.Symbol(name, real=True), relational=False)
        pieces = found.args if isinstance(found, sympy.Union) else (found,)
        intervals: list[tuple[float, float, bool, bool]] = []
        for piece in pieces:
            if isinstance(piece, sympy.FiniteSet):
                intervals += [(float(at), float(at), True, True) for at in piece.args]
            elif piece is not sympy.S.EmptySet:
                low, high, left_open, right_open = piece.args
                intervals.append((float(low), float(high), not left_open, not right_open))
        return intervals
    except (_UnknownError, TypeError, ValueError, AttributeError, NotImplementedError, ArithmeticError):
        return None


_MAX_POWER = 8
"""Largest exponent in an inequality that SymPy solves."""


def _is_algebraic(node: Node) -> bool:
    match node:
        case (
            Num() | Sym() | Const(name="pi" | "e") | Apply(op="add" | "mul" | "neg" | "div" | "mixed" | "root" | "abs")
        ):
            return True
        case Apply(op="pow", args=(_, exponent)):
            return whole(exponent) in range(-_MAX_POWER, _MAX_POWER + 1)
        case _:
            return False


def _build(sympy: Any, node: Node) -> Any:
    match node:
        case Num(value=value):
            return sympy.Rational(value.numerator, value.denominator)
        case Sym(name=name) if name != "...":
            return sympy.Symbol(name, real=True)
        case Const(name=name) if name in _CONSTANTS:
            return getattr(sympy, _CONSTANTS[name])
        case Apply(op="neg", args=(inner,)):
            return -_build(sympy, inner)
        case Apply(op="div" | "ratio", args=(top, bottom)):
            return _build(sympy, top) / _build(sympy, bottom)
        case Apply(op="lg", args=(value,)):
            return sympy.log(_build(sympy, value), 10)
        case Apply(op=op, args=(_, *_) as args) if op in _FUNCTIONS:
            return getattr(sympy, _FUNCTIONS[op])(*(_build(sympy, arg) for arg in args))
        case Big():
            return _big(sympy, node)
        case _:
            raise _UnknownError


def _big(sympy: Any, node: Big) -> Any:
    if not node.variable:
        raise _UnknownError
    variable = sympy.Symbol(node.variable, **{"real" if node.kind in ("int", "lim") else "integer": True})
    body = _build(sympy, node.body).subs(sympy.Symbol(node.variable, real=True), variable)
    lower = None if node.lower is None else _build(sympy, node.lower)
    upper = None if node.upper is None else _build(sympy, node.upper)
    if node.kind == "lim" and lower is not None:
        return sympy.Limit(body, variable, lower)
    if lower is None or upper is None:
        raise _UnknownError
    kinds = {"sum": sympy.Sum, "prod": sympy.Product, "int": sympy.Integral}
    return kinds[node.kind](body, (variable, lower, upper))


def math_verify_alone(gold: str, answer: str) -> tuple[str, str]:
    """Grade with the package math-verify and its default options; return the reason and the method."""
    library = load("math_verify")
    # The parent keeps the deadline: math-verify's own alarm cannot interrupt C code, and it uses up SIGALRM.
    wanted, given = (library.parse(_delimited(text), parsing_timeout=None) for text in (gold, answer))
    if not wanted or not given:
        return ("unparsable_answer" if wanted else "unparsable_gold"), "math-verify"
    equal = library.verify(wanted, given, timeout_seconds=None)
    return ("equal" if equal else "different"), "math-verify"


def _delimited(text: str) -> str:
    """Put a bare formula between dollars for math-verify; return a text with delimiters or a box unchanged."""
    return text if any(mark in text for mark in ("$", "\\(", "\\[", "\\boxed", "\\fbox")) else f"${text}$"
