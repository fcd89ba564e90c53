r"""Arithmetic over given numbers: a parser without ``eval``, exact values, and a solver.

Covered: whole numbers, ``+ - * /`` and parentheses, exact rationals as values, other notations that models use for
operators (``×``, ``÷``, ``\times``, ``\frac{a}{b}``). Deliberately not covered: unary minus, powers, implicit
multiplication.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from operator import add, mul, sub, truediv
from typing import TypeVar

import numpy as np

from rstar2_env.worlds.puzzle import UnreadableAnswerError
from rstar2_env.worlds.reading import plain

T = TypeVar("T")

_LONGEST = 400
_DEEPEST = 60
_TRIES = 40
_TOKEN = re.compile(r"\s*(?:(?P<number>0|[1-9][0-9]{0,8})(?![0-9])|(?P<sign>[-+*/()]))")
_SIGNS = {
    "\\times": "*",
    "\\cdot": "*",
    "\\div": "/",
    "\\left": "",
    "\\right": "",
    "×": "*",
    "·": "*",
    "÷": "/",
    "−": "-",
    "–": "-",
    "[": "(",
    "]": ")",
}
_FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_RANK = {"+": 1, "-": 1, "*": 2, "/": 2}
_OPERATIONS: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {"+": add, "-": sub, "*": mul, "/": truediv}


@dataclass(frozen=True, slots=True)
class ParsedExpression:
    """A parsed expression.

    Attributes:
        numbers: Every number in the expression, in order.
        postfix: Numbers and operators in postfix order.
    """

    numbers: tuple[int, ...]
    postfix: tuple[int | str, ...]

    def value(self) -> Fraction | None:
        """The exact value of the expression; ``None`` if it divides by zero."""
        stack: list[Fraction] = []
        for item in self.postfix:
            if isinstance(item, int):
                stack.append(Fraction(item))
                continue
            right, left = stack.pop(), stack.pop()
            if item == "/" and right == 0:
                return None
            stack.append(_OPERATIONS[item](left, right))
        return stack[0]


def read_expression(answer: str, target: int | None = None) -> ParsedExpression:
    """Parse the expression in an answer.

    Args:
        answer: The policy's answer, as the dialect extracts it from the turn.
        target: The number that may follow an equals sign at the end, as in ``(1+2)*8 = 24``.

    Raises:
        UnreadableAnswerError: The answer is not an expression over whole numbers; the message names the position.
    """
    text = plain(answer)
    if len(text) > _LONGEST:
        raise UnreadableAnswerError(f"expected at most {_LONGEST} characters, got {len(text)}")
    for _ in range(_DEEPEST):  # each round rewrites the innermost fractions
        text, opened = _FRACTION.subn(r"((\1)/(\2))", text)
        if not opened:
            break
    for written, sign in _SIGNS.items():
        text = text.replace(written, sign)
    left, equals, right = text.partition("=")
    if equals and (target is None or right.strip() != str(target)):
        raise UnreadableAnswerError(f"expected only the target after an equals sign, got {right[:40]!r}")
    return _read(left.rstrip())


def _read(text: str) -> ParsedExpression:
    """Parse a text by Dijkstra's shunting-yard algorithm without recursion, so no text can overflow the stack."""
    numbers: list[int] = []
    postfix: list[int | str] = []
    waiting: list[str] = []
    at, operand_next = 0, True
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise UnreadableAnswerError(f"expected a number, + - * / or a parenthesis at {text[at : at + 20]!r}")
        at = match.end()
        number, sign = match["number"], match["sign"]
        if operand_next != (number is not None or sign == "("):
            raise UnreadableAnswerError(f"{match[0].strip()!r} is misplaced")
        if number is not None:
            numbers.append(int(number))
            postfix.append(int(number))
            operand_next = False
        elif sign == "(":
            waiting.append(sign)
        elif sign == ")":
            while waiting and waiting[-1] != "(":
                postfix.append(waiting.pop())
            if not waiting:
                raise UnreadableAnswerError("a closing parenthesis has no opening parenthesis")
            waiting.pop()
        else:
            while waiting and waiting[-1] != "(" and _RANK[waiting[-1]] >= _RANK[sign]:
                postfix.append(waiting.pop())
            waiting.append(sign)
            operand_next = True
    if operand_next or "(" in waiting:
        raise UnreadableAnswerError("the expression is not complete")
    return ParsedExpression(tuple(numbers), (*postfix, *reversed(waiting)))


def uses_each_once(used: Iterable[int], given: Iterable[int]) -> bool:
    """Whether exactly the given numbers are used, each as often as it is given."""
    return Counter(used) == Counter(given)


def uses_each_at_most_once(used: Iterable[int], given: Iterable[int]) -> bool:
    """Whether only given numbers are used, none more often than it is given."""
    return Counter(used) <= Counter(given)


def solve(numbers: Sequence[int], target: int) -> str | None:
    """An expression that uses every number once and whose value is ``target``; ``None`` if there is none.

    The solver tabulates all values that each proper subset of the numbers can make. For the whole set, it combines each
    value of a subset with the value that the remaining numbers would have to make. Meant for up to five numbers.
    """
    everything = (1 << len(numbers)) - 1
    made: dict[int, dict[Fraction, str]] = {1 << i: {Fraction(n): str(n)} for i, n in enumerate(numbers)}
    if len(numbers) == 1:
        return made[1].get(Fraction(target))
    for size in range(2, len(numbers)):
        for chosen in combinations(range(len(numbers)), size):
            whole = sum(1 << i for i in chosen)
            values: dict[Fraction, str] = {}
            made[whole] = values
            for part in _parts(whole):
                for a, left in made[part].items():
                    for b, right in made[whole ^ part].items():
                        for sign in "+-*/" if b else "+-*":
                            values.setdefault(_OPERATIONS[sign](a, b), f"({left}{sign}{right})")
    goal = Fraction(target)
    for part in _parts(everything):
        rest = made[everything ^ part]
        for a, left in made[part].items():
            missing = [("+", goal - a), ("-", a - goal)]
            if a:
                missing.append(("*", goal / a))
            if a and goal:
                missing.append(("/", a / goal))
            for sign, b in missing:
                if b in rest:
                    return f"{left}{sign}{rest[b]}"
    return None


def _parts(whole: int) -> list[int]:
    """Every subset of ``whole`` except the empty set and ``whole`` itself; all sets are bit masks."""
    parts, part = [], (whole - 1) & whole
    while part:
        parts.append(part)
        part = (part - 1) & whole
    return parts


def random_expression(numbers: Sequence[int], rng: np.random.Generator) -> str:
    """A random expression that uses every number once: random operators join two terms until one term is left."""
    left = list(map(str, numbers))
    while len(left) > 1:
        a, b = _take_two(left, rng)
        left.append(f"({a}{'+-*/'[int(rng.integers(4))]}{b})")
    return left[0][1:-1] if len(numbers) > 1 else left[0]


def random_whole_expression(numbers: Sequence[int], rng: np.random.Generator) -> tuple[str, int] | None:
    """A random expression over ``numbers``, and its value; ``None`` if a partial result is not a whole number > 0."""
    left = [(str(number), number) for number in numbers]
    while len(left) > 1:
        (a, x), (b, y) = _take_two(left, rng)
        sign = "+-*/"[int(rng.integers(4))]
        if (sign == "-" and x <= y) or (sign == "/" and x % y):
            return None
        value = {"+": x + y, "-": x - y, "*": x * y, "/": x // y}[sign]
        left.append((f"({a}{sign}{b})", value))
    text, value = left[0]
    return (text[1:-1] if len(numbers) > 1 else text), value


def _take_two(items: list[T], rng: np.random.Generator) -> tuple[T, T]:
    first = items.pop(int(rng.integers(len(items))))
    return first, items.pop(int(rng.integers(len(items))))


def random_target(numbers: Sequence[int], least: int, largest: int, rng: np.random.Generator) -> tuple[str, int] | None:
    """Draw an expression that uses every number once and whose value is not one of the numbers.

    Args:
        numbers: Positive whole numbers.
        least: Smallest allowed value of the expression.
        largest: Largest allowed value of the expression.
        rng: The generator of random numbers.

    Returns:
        The expression and its value; ``None`` after 40 failed draws.
    """
    for _ in range(_TRIES):
        found = random_whole_expression(numbers, rng)
        if found is not None and least <= found[1] <= largest and found[1] not in numbers:
            return found
    return None


@lru_cache(maxsize=1 << 14)
def solution(numbers: tuple[int, ...], target: int) -> str | None:
    """Return the result of ``solve`` from a cache, since random draws often repeat the same numbers."""
    return solve(numbers, target)
