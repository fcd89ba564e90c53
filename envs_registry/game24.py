"""``rstar2/Game24-v0``: make 24 of four numbers, each used exactly once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from rstar2_env.problems import Draft, split_of
from rstar2_env.puzzle_env import PuzzleEnv, register
from rstar2_env.worlds.expressions import random_expression, read_expression, solve, uses_each_once
from rstar2_env.worlds.puzzle import Puzzle

_QUESTION = """\
Make {target} from the numbers {numbers}: write an expression with +, -, *, / and parentheses that uses each of these \
numbers exactly once and no other number. Division is exact. Answer with the expression."""


@dataclass(frozen=True)
class Game24(Puzzle):
    """Numbers that can make the target.

    Args:
        numbers: How many numbers are given.
        largest: Each of them is from 1 to this.
        target: What to make of them.

    Raises:
        ConfigurationError: A knob is out of its range.
    """

    name: ClassVar[str] = "game24"
    numbers: int = 4
    largest: int = 13
    target: int = 24

    def __post_init__(self) -> None:
        self.require("numbers", 2, 5)
        self.require("largest", 2, 1000)
        self.require("target", 0, 1_000_000)

    def draw(self, rng: np.random.Generator, split: str) -> Draft | None:
        """Draw numbers until the solver finds a way; their order in the question is random too."""
        numbers = rng.integers(1, self.largest + 1, size=self.numbers).tolist()
        key = f"{self.target} from {sorted(numbers)}"
        if split_of(key) != split or (answer := _solution(tuple(sorted(numbers)), self.target)) is None:
            return None
        question = _QUESTION.format(target=self.target, numbers=", ".join(map(str, numbers)))
        return Draft(question, answer, key, {"numbers": numbers, "target": self.target})

    def solves(self, meta: Mapping[str, Any], answer: str) -> bool:
        """Whether the expression has the target's value and uses each number once."""
        reading = read_expression(answer, meta["target"])
        return uses_each_once(reading.numbers, meta["numbers"]) and reading.value() == meta["target"]

    def guess(self, meta: Mapping[str, Any], rng: np.random.Generator) -> str:
        """A random expression over all the numbers."""
        return random_expression(meta["numbers"], rng)


@lru_cache(maxsize=1 << 14)
def _solution(numbers: tuple[int, ...], target: int) -> str | None:
    return solve(numbers, target)


class Game24Env(PuzzleEnv):
    r"""Make 24 of four numbers with + - * / and parentheses, each used exactly once.

    ## Puzzle
    ``numbers`` numbers from 1 to ``largest``, such that an exhaustive solver over exact rationals finds a way. By
    default these are the 1,362 solvable of all 1,820 hands, so seeds come back to a hand soon, in any order of its
    numbers; a hand belongs to one split in every order.

    ## Answer
    An expression: whole numbers, ``+ - * /``, parentheses; also ``×``, ``÷``, ``\times``, ``\cdot``, ``\div``,
    ``\frac{a}{b}``, brackets, and ``= 24`` behind it. No unary minus, no powers, no ``2(3)``. Any solution counts. It
    is read by a parser of our own and computed exactly; nothing in it is ever run.

    ## Difficulty
    ``numbers=4`` (2 to 5; a hand of 5 takes the solver tens of milliseconds), ``largest=13``, ``target=24``.

    ## Random baseline
    0.008: a random expression over all the numbers.

    ## Version history
    v0: the first.
    """

    puzzle = Game24
    random_baseline = 0.008


register("rstar2/Game24-v0", Game24Env)
