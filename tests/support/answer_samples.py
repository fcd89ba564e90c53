"""Random expressions, equivalent rewritings of them, and different ones: material to test a verifier with.

Covered: expressions in up to two variables over arithmetic, powers, roots and elementary functions; rewritings by the
laws that people use; LaTeX in several hands. An oracle of its own (floating point, on the trees as they were made) says
whether two of them differ, so that nothing of the verifier under test judges the verifier.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

Maker = Callable[[Random, "Term"], "Term | None"]


@dataclass(frozen=True, slots=True)
class Term:
    """An expression: an operator and its arguments; ``int`` and ``var`` are leaves whose text is the value."""

    op: str
    args: tuple[Term, ...] = ()
    text: str = ""


def number(value: int) -> Term:
    """An integer."""
    return Term("int", text=str(value)) if value >= 0 else Term("neg", (Term("int", text=str(-value)),))


def variable(name: str) -> Term:
    """A variable."""
    return Term("var", text=name)


def random_term(chance: Random, depth: int = 3, names: Sequence[str] = ("x", "y")) -> Term:
    """A random expression of at most that depth."""
    if depth == 0 or chance.random() < 0.15:
        return variable(chance.choice(names)) if names and chance.random() < 0.5 else number(chance.randint(1, 12))
    op = chance.choice(("add", "add", "sub", "mul", "mul", "div", "pow", "sqrt", "sin", "cos", "exp", "ln", "neg"))
    inner = random_term(chance, depth - 1, names)
    match op:
        case "add" | "sub" | "mul" | "div":
            return Term(op, (inner, random_term(chance, depth - 1, names)))
        case "pow":
            return Term("pow", (inner, number(chance.randint(2, 4))))
        case "exp":
            return Term("exp", (random_term(chance, min(depth - 1, 1), names),))
        case _:
            return Term(op, (inner,))


def value(term: Term, point: dict[str, float]) -> complex:
    """The value in floating point.

    Raises:
        ArithmeticError: There is none.
        ValueError: A function has none there.
    """
    match term.op:
        case "int":
            return complex(int(term.text))
        case "var":
            return complex(point[term.text])
        case "neg":
            return -value(term.args[0], point)
        case "add":
            return value(term.args[0], point) + value(term.args[1], point)
        case "sub":
            return value(term.args[0], point) - value(term.args[1], point)
        case "mul":
            return value(term.args[0], point) * value(term.args[1], point)
        case "div":
            return value(term.args[0], point) / value(term.args[1], point)
        case "pow":
            return value(term.args[0], point) ** value(term.args[1], point).real
        case _:
            inner = value(term.args[0], point)
            if abs(inner.imag) > 1e-12 or abs(inner) > 50:
                raise ValueError("outside of the oracle's range")
            if term.op in ("sqrt", "ln") and inner.real <= 0:
                raise ValueError("outside of the domain")
            functions = {"sqrt": cmath.sqrt, "ln": cmath.log, "sin": cmath.sin, "cos": cmath.cos, "exp": cmath.exp}
            return functions[term.op](inner.real)


def differ(one: Term, other: Term, chance: Random) -> bool | None:
    """Whether two expressions differ by what floating point can see; ``None`` if no point could be evaluated."""
    met = 0
    for _ in range(30):
        point = {name: chance.uniform(0.2, 4.0) for name in ("x", "y")}
        try:
            left, right = value(one, point), value(other, point)
        except (ArithmeticError, ValueError):
            continue
        scale = max(abs(left), abs(right))
        if not math.isfinite(scale) or scale > 1e9 or (0 < scale < 1e-6):
            continue
        met += 1
        if abs(left - right) > 1e-6 * max(scale, 1e-3):
            return True
    return False if met >= 3 else None


def rewrite(chance: Random, term: Term, steps: int = 4) -> Term:
    """An equivalent expression, by that many random laws at random places."""
    for _ in range(steps):
        term = _somewhere(chance, term)
    return term


def _somewhere(chance: Random, term: Term) -> Term:
    if term.args and chance.random() < 0.6:
        at = chance.randrange(len(term.args))
        if term.op == "pow" and at == 1:
            return term
        inner = _somewhere(chance, term.args[at])
        return Term(term.op, (*term.args[:at], inner, *term.args[at + 1 :]), term.text)
    for law in chance.sample(_LAWS, len(_LAWS)):
        changed = law(chance, term)
        if changed is not None:
            return changed
    return term


def mutate(chance: Random, term: Term) -> Term:
    """A copy with one thing changed: a number, a variable, an operator."""
    if term.args and chance.random() < 0.7:
        at = chance.randrange(len(term.args))
        return Term(term.op, (*term.args[:at], mutate(chance, term.args[at]), *term.args[at + 1 :]), term.text)
    if term.op == "int":
        return number(int(term.text) + chance.choice((-1, 1, 2, 10)))
    if term.op == "var":
        return variable("y" if term.text == "x" else "x")
    swaps = {"add": "sub", "sub": "add", "mul": "add", "div": "mul", "sin": "cos", "cos": "sin", "sqrt": "neg"}
    if term.op in swaps:
        return Term(swaps[term.op], term.args)
    return Term("add", (term, number(1)))


def latex(chance: Random, term: Term) -> str:
    """The expression in LaTeX, in one of the ways to write it."""
    match term.op:
        case "int" | "var":
            return term.text
        case "neg":
            return f"-{_factor(chance, term.args[0])}"
        case "add" | "sub":
            sign = "+" if term.op == "add" else "-"
            last = term.args[1]
            tail = _in_brackets(chance, last) if last.op in ("add", "sub", "neg") else latex(chance, last)
            return f"{latex(chance, term.args[0])}{_space(chance)}{sign}{_space(chance)}{tail}"
        case "mul":
            left, right = (_factor(chance, arg) for arg in term.args)
            mark = chance.choice((r"\cdot ", r"\times ", "*"))
            if right[0] in "(\\" and term.args[0].op in ("var", "sqrt", "pow"):  # "2 \frac{1}{6}" is a mixed number
                mark = chance.choice((mark, " "))
            return f"{left}{mark}{right}"
        case "div":
            top, bottom = (latex(chance, arg) for arg in term.args)
            return f"\\{chance.choice(('frac', 'dfrac'))}{{{top}}}{{{bottom}}}"
        case "pow":
            base = term.args[0]
            shown = latex(chance, base) if base.op in ("int", "var") else _in_brackets(chance, base)
            return f"{shown}^{{{latex(chance, term.args[1])}}}"
        case "sqrt":
            return f"\\sqrt{{{latex(chance, term.args[0])}}}"
        case "exp":
            return f"e^{{{latex(chance, term.args[0])}}}"
        case name:
            return f"\\{name}{_in_brackets(chance, term.args[0])}"


def _in_brackets(chance: Random, term: Term) -> str:
    inner = latex(chance, term)
    return chance.choice((f"({inner})", f"\\left({inner}\\right)"))


def _factor(chance: Random, term: Term) -> str:
    return _in_brackets(chance, term) if term.op in ("add", "sub", "neg", "mul") else latex(chance, term)


def _space(chance: Random) -> str:
    return chance.choice(("", " ", " "))


def _commute(chance: Random, term: Term) -> Term | None:
    return Term(term.op, (term.args[1], term.args[0])) if term.op in ("add", "mul") else None


def _subtract(chance: Random, term: Term) -> Term | None:
    if term.op != "sub":
        return None
    left, right = term.args
    return chance.choice((Term("add", (left, Term("neg", (right,)))), Term("neg", (Term("sub", (right, left)),))))


def _distribute(chance: Random, term: Term) -> Term | None:
    if term.op != "mul" or term.args[1].op not in ("add", "sub"):
        return None
    factor, (one, other) = term.args[0], term.args[1].args
    return Term(term.args[1].op, (Term("mul", (factor, one)), Term("mul", (factor, other))))


def _associate(chance: Random, term: Term) -> Term | None:
    if term.op not in ("add", "mul") or term.args[0].op != term.op:
        return None
    (one, two), three = term.args[0].args, term.args[1]
    return Term(term.op, (one, Term(term.op, (two, three))))


def _scale_fraction(chance: Random, term: Term) -> Term | None:
    if term.op != "div":
        return None
    factor = number(chance.randint(2, 9))
    return Term("div", (Term("mul", (factor, term.args[0])), Term("mul", (term.args[1], factor))))


def _split_number(chance: Random, term: Term) -> Term | None:
    if term.op != "int" or int(term.text) < 2:
        return None
    total = int(term.text)
    part = chance.randint(1, total - 1)
    return Term("add", (number(part), number(total - part)))


def _unfold_power(chance: Random, term: Term) -> Term | None:
    if term.op != "pow" or term.args[1].op != "int":
        return None
    power = int(term.args[1].text)
    if power == 2:
        return Term("mul", (term.args[0], term.args[0]))
    return Term("mul", (term.args[0], Term("pow", (term.args[0], number(power - 1)))))


def _square_binomial(chance: Random, term: Term) -> Term | None:
    if term.op != "pow" or term.args[0].op != "add" or term.args[1].text != "2":
        return None
    one, other = term.args[0].args
    double = Term("mul", (number(2), Term("mul", (one, other))))
    return Term("add", (Term("pow", (one, number(2))), Term("add", (double, Term("pow", (other, number(2)))))))


def _root_of_product(chance: Random, term: Term) -> Term | None:
    if term.op != "sqrt" or term.args[0].op != "int":
        return None
    factor = chance.randint(2, 5)
    inner = Term("sqrt", (number(int(term.args[0].text) * factor * factor),))
    return Term("div", (inner, number(factor)))


def _pythagoras(chance: Random, term: Term) -> Term | None:
    if term.op not in ("sin", "cos") or chance.random() < 0.5:
        return None
    other = Term("cos" if term.op == "sin" else "sin", term.args)
    one = Term("add", (Term("pow", (term, number(2))), Term("pow", (other, number(2)))))
    return Term("mul", (term, one))


def _exponential(chance: Random, term: Term) -> Term | None:
    if term.op != "exp" or term.args[0].op != "add":
        return None
    one, other = term.args[0].args
    return Term("mul", (Term("exp", (one,)), Term("exp", (other,))))


def _logarithm(chance: Random, term: Term) -> Term | None:
    if term.op != "ln" or term.args[0].op != "int":
        return None
    factor = chance.randint(2, 9)
    return Term("sub", (Term("ln", (number(int(term.args[0].text) * factor),)), Term("ln", (number(factor),))))


def _add_nothing(chance: Random, term: Term) -> Term | None:
    amount = number(chance.randint(1, 9))
    return Term("sub", (Term("add", (term, amount)), amount)) if chance.random() < 0.3 else None


_LAWS: tuple[Maker, ...] = (
    _commute,
    _commute,
    _subtract,
    _distribute,
    _associate,
    _scale_fraction,
    _split_number,
    _unfold_power,
    _square_binomial,
    _root_of_product,
    _pythagoras,
    _exponential,
    _logarithm,
    _add_nothing,
)
