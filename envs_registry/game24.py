"""``rstar2/Game24-v0``: make 24 from four numbers, each used exactly once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rstar2_env.env.puzzle_env import Draft, Meta, Puzzle, knob, register, split_of
from rstar2_env.worlds.expressions import random_expression, read_expression, solution, uses_each_once

_QUESTION = """\
Make {target} from the numbers {numbers}: write an expression with +, -, *, / and parentheses that uses each of these \
numbers exactly once and no other number. Division is exact. Answer with the expression."""


@dataclass(frozen=True)
class Game24(Puzzle):
    r"""Make 24 from four numbers with + - * / and parentheses, each used exactly once.

    ## Puzzle
    ``numbers`` numbers from 1 to ``largest`` are drawn until an exhaustive solver over exact rationals finds a
    solution. At the defaults, 1,362 of the 1,820 sets of four numbers are solvable, so sets are soon repeated, with
    their numbers in another order; all orders of a set belong to the same split.

    ## Answer
    An expression: whole numbers, ``+ - * /``, parentheses; also ``×``, ``÷``, ``\times``, ``\cdot``, ``\div``,
    ``\frac{a}{b}``, brackets, and ``= 24`` at the end. No unary minus, no powers, no ``2(3)``. Any solution
    counts. The expression is read by a dedicated parser and computed exactly; it is never executed.

    ## Difficulty
    ``numbers=4`` (2 to 5; the solver takes tens of milliseconds for 5 numbers), ``largest=13``, ``target=24``.

    ## Random baseline
    0.008: the player writes a random expression over all the numbers.
    """

    name = "game24"
    random_baseline = 0.008
    numbers: int = knob(4, 2, 5)
    largest: int = knob(13, 2, 1000)
    target: int = knob(24, 0, 1_000_000)

    def draw(self, rng: np.random.Generator, split: str) -> Draft | None:
        """Draw numbers once; return ``None`` if they have no solution or belong to another split."""
        numbers = rng.integers(1, self.largest + 1, size=self.numbers).tolist()
        key = f"{self.target} from {sorted(numbers)}"
        if split_of(key) != split or (answer := solution(tuple(sorted(numbers)), self.target)) is None:
            return None
        question = _QUESTION.format(target=self.target, numbers=", ".join(map(str, numbers)))
        return Draft(question, answer, key, {"numbers": numbers, "target": self.target})

    def solves(self, meta: Meta, answer: str) -> bool:
        """Return whether the expression has the target's value and uses each number once."""
        reading = read_expression(answer, meta["target"])
        return uses_each_once(reading.numbers, meta["numbers"]) and reading.value() == meta["target"]

    def guess(self, meta: Meta, rng: np.random.Generator) -> str:
        """Return a random expression with all the numbers."""
        return random_expression(meta["numbers"], rng)


register("rstar2/Game24-v0", Game24)
