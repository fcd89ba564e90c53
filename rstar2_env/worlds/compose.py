"""Draws compositions of string functions, and writes them as programs.

Each kind of expression node is drawn with its frequency in "From f(x) and g(x) to f(g(x))" (arXiv 2509.25123). The
functions are in ``rstar2_env.worlds.string_functions``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rstar2_env.worlds.puzzle import pick
from rstar2_env.worlds.string_functions import CASE_METHODS, StringFunction

_BINARY, _METHOD, _HALF = 0.2, 0.02, 0.5
_RANGES = {"count": (2, 4), "turn": (1, 3), "shift": (1, 5), "depth": (1, 3)}
_MARKS = ("-", "_", "|")


@dataclass(frozen=True, slots=True)
class Composition:
    """An expression over the input ``x``, and its value.

    Attributes:
        expression: The expression in Python.
        value: Value of the expression for the input with which it was drawn.
        functions: The functions that the expression calls, each once, sorted by the number in their name.
        reads_input: Whether the expression contains the input.
    """

    expression: str
    value: str
    functions: tuple[StringFunction, ...] = ()
    reads_input: bool = False

    def program(self, show_source: bool) -> str:
        """Source of the function ``main_solution``; with ``show_source``, preceded by the functions that it calls."""
        parts = [function.source for function in self.functions] if show_source else []
        if any("gcd(" in part for part in parts):
            parts.insert(0, "from math import gcd")
        return "\n\n".join([*parts, f"def main_solution(x):\n    return {self.expression}"])


def compose(
    text: str, depth: int, pool: Sequence[StringFunction], longest: int, rng: np.random.Generator
) -> Composition | None:
    """Draw an expression over the input ``x``; ``None`` if one of its values gets too long.

    Args:
        text: Value of ``x``, from which the expression's value is computed.
        depth: Nesting depth; at 0, the expression is ``x`` or a literal string.
        pool: The functions that may be called.
        longest: Maximum length of a value, in characters.
        rng: The generator of random numbers.
    """
    if depth == 0:
        if rng.random() < _HALF:
            return Composition("x", text, reads_input=True)
        literal = letters(rng, 3, 6)
        return Composition(f'"{literal}"', literal)
    inner = compose(text, depth - 1, pool, longest, rng)
    if inner is None:
        return None
    made = _join(inner, text, depth, pool, longest, rng) if rng.random() < _BINARY else _wrap(inner, pool, rng)
    return made if made is not None and len(made.value) <= longest else None


def letters(rng: np.random.Generator, least: int, most: int) -> str:
    """Random lower-case letters.

    Args:
        rng: The generator of random numbers.
        least: Minimum number of letters.
        most: Maximum number of letters.
    """
    count = int(rng.integers(least, most + 1))
    return "".join(chr(ord("a") + number) for number in rng.integers(26, size=count).tolist())


def _join(
    inner: Composition, text: str, depth: int, pool: Sequence[StringFunction], longest: int, rng: np.random.Generator
) -> Composition | None:
    """Join ``inner`` and a second expression by ``+`` or a function with two arguments.

    The second expression is drawn with a depth below ``depth``. The order of the two expressions is random. For the
    arguments see ``compose``.
    """
    other = compose(text, int(rng.integers(depth)), pool, longest, rng)
    if other is None:
        return None
    left, right = (inner, other) if rng.random() < _HALF else (other, inner)
    called = {*left.functions, *right.functions}
    reads = left.reads_input or right.reads_input
    if rng.random() < _HALF:
        return Composition(
            f"({left.expression} + {right.expression})", left.value + right.value, _sorted(called), reads
        )
    function = pick(rng, [function for function in pool if function.kind == "binary"])
    expression = f"{function.name}({left.expression}, {right.expression})"
    return Composition(expression, function.call(left.value, right.value), _sorted({*called, function}), reads)


def _wrap(inner: Composition, pool: Sequence[StringFunction], rng: np.random.Generator) -> Composition:
    """Apply a string method or a function of ``pool`` to ``inner``; the function may take one more argument."""
    if rng.random() < _METHOD:
        method = pick(rng, CASE_METHODS)
        value = str(getattr(inner.value, method)())
        return Composition(f"{inner.expression}.{method}()", value, inner.functions, inner.reads_input)
    plain = rng.random() < _HALF
    function = pick(rng, [each for each in pool if each.kind != "binary" and (each.kind == "plain") == plain])
    arguments = [] if plain else [_argument(function.kind, rng)]
    expression = f"{function.name}({', '.join([inner.expression, *map(_written, arguments)])})"
    called = _sorted({*inner.functions, function})
    return Composition(expression, function.call(inner.value, *arguments), called, inner.reads_input)


def _argument(kind: str, rng: np.random.Generator) -> int | str:
    if kind == "affix":
        return letters(rng, 2, 4)
    if kind == "mark":
        return pick(rng, _MARKS)
    least, most = _RANGES[kind]
    return int(rng.integers(least, most + 1))


def _written(argument: int | str) -> str:
    return f'"{argument}"' if isinstance(argument, str) else str(argument)


def _sorted(functions: set[StringFunction]) -> tuple[StringFunction, ...]:
    return tuple(sorted(functions, key=lambda function: int(function.name.removeprefix("func_"))))
