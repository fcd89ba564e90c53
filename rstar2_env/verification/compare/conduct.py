"""Texts that are not answers although their value may be right: work left undone, an echo of the question.

Covered: sums, products, integrals, limits, greatest common divisors, remainders, factorials, binomials and similar
operations on constants, unless the gold leaves them undone too; with ``undone="none"`` any arithmetic between rational
numbers; if the question is given, an expression that is copied out of it. Not covered: several candidates and
tautologies, which simply compare as different.
"""

from __future__ import annotations

import re
from fractions import Fraction

from rstar2_env.verification.read.clean import clean
from rstar2_env.verification.read.nodes import (
    Apply,
    Big,
    Const,
    Group,
    Matrix,
    Node,
    Num,
    Relation,
    Sym,
    Words,
    key,
    symbols,
    walk,
)
from rstar2_env.verification.values.evaluate import Evaluator
from rstar2_env.verification.values.interval import TooLargeError, UndefinedError, UnsupportedError, VagueError

_WORK = frozenset({"fact", "fact2", "binom", "gcd", "lcm", "mod", "det", "max", "min", "floor", "ceil", "base"})
_ARITHMETIC = frozenset({"add", "mul", "div", "pow", "root", "abs", "mixed", "log", "ln"})
_SPACE = re.compile(r"[\s{}]|\\left|\\right")


def work_left(gold: Node, answer: Node, undone: str) -> str | None:
    """Name an operation that the answer leaves undone and the gold does not, or return ``None``.

    Args:
        gold: The gold answer.
        answer: The answer.
        undone: How much work may be left undone: "none", "arithmetic" or "any".
    """
    if undone == "any":
        return None
    left = _work(answer) - _work(gold)
    if left:
        return min(left)
    if undone == "none" and _has_arithmetic(answer) and not _has_arithmetic(gold):
        return "arithmetic"
    return None


def _work(node: Node) -> set[str]:
    found: set[str] = set()
    for part in walk(node):
        if isinstance(part, Big):
            found.add(part.kind)
        elif isinstance(part, Apply) and part.op in _WORK and not symbols(part):
            found.add(part.op)
    found.discard("base")
    return found


def _has_arithmetic(node: Node) -> bool:
    """Whether a part without variables has a rational value that it leaves to be computed."""
    for part in walk(node):
        if not isinstance(part, Apply) or part.op not in _ARITHMETIC or symbols(part) or _is_stated(part):
            continue
        if any(isinstance(inner, Const | Relation | Group | Matrix | Words) for inner in walk(part)):
            continue
        try:
            value = Evaluator({}, 64).value(part)
        except (UnsupportedError, UndefinedError, VagueError, TooLargeError):
            continue
        if isinstance(value, Fraction):
            return True
    return False


def _is_stated(node: Apply) -> bool:
    """Whether a node is a number in final form: a fraction in lowest terms, a mixed number, scientific notation."""
    match node:
        case Apply(op="neg", args=(Num(),)):
            return True
        case Apply(op="div", args=(Num(value=top), Num(value=bottom))):
            return bottom != 0 and Fraction(top, bottom).denominator == abs(bottom)
        case Apply(op="mixed"):
            return True
        case Apply(op="mul", args=(Num(), Apply(op="pow", args=(Num(value=ten), _)))):
            return ten == 10
        case Apply(op="pow", args=(Num(value=ten), _)):
            return ten == 10
        case _:
            return False


def echoes(gold: Node, answer: Node, answer_text: str, question: str) -> bool:
    """Whether the answer is an expression that the question states and the gold does not.

    Args:
        gold: The gold answer.
        answer: The answer.
        answer_text: The answer as it was written.
        question: The question.
    """
    if key(gold) == key(answer) or isinstance(answer, Num | Sym | Words | Const):
        return False
    if not any(isinstance(part, Apply | Big | Relation) for part in walk(answer)):
        return False
    if isinstance(answer, Apply) and _is_stated(answer):
        return False
    plain = _SPACE.sub("", clean(answer_text))
    return len(plain) >= 3 and plain in _SPACE.sub("", clean(question).replace("$", ""))
