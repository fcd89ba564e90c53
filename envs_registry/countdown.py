"""``rstar2/Countdown-v0``: reach a target with some of the given numbers, each used at most once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rstar2_env.env.puzzle_env import Draft, Meta, Puzzle, knob, register
from rstar2_env.worlds.expressions import random_expression, random_target, read_expression, uses_each_at_most_once
from rstar2_env.worlds.puzzle import shuffled

_QUESTION = """\
Make {target} from the numbers {numbers}: write an expression with +, -, *, / and parentheses that uses each of these \
numbers at most once, not necessarily all, and no other number. Division is exact. Answer with the expression."""


@dataclass(frozen=True)
class Countdown(Puzzle):
    r"""Reach a target with + - * / and parentheses over some of the given numbers, each at most once.

    ## Puzzle
    ``numbers`` numbers from 1 to ``largest`` are drawn and combined at random, with only positive whole numbers as
    intermediate values; a value from ``least_target`` to ``largest_target`` that is not one of the numbers becomes the
    target. So every instance has a solution that uses all of the numbers.

    ## Answer
    An expression, as in ``rstar2/Game24-v0``. Intermediate fractions are allowed. Any solution counts. The expression
    is read by a dedicated parser and computed exactly; it is never executed.

    ## Difficulty
    ``numbers=4`` (2 to 8), ``largest=50``, ``least_target=10``, ``largest_target=100``.

    ## Random baseline
    0.006: the player writes a random expression over a random choice of two or more of the numbers.
    """

    name = "countdown"
    random_baseline = 0.006
    numbers: int = knob(4, 2, 8)
    largest: int = knob(50, 2, 1000)
    least_target: int = knob(10, 1, 1_000_000)
    largest_target: int = knob(100, 1, 1_000_000)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("largest_target", self.least_target, 1_000_000)

    def draw(self, rng: np.random.Generator, split: str) -> Draft | None:
        """Draw numbers once, and combine them at random to reach a target.

        The result is ``None`` if no combination has a value in the target range that differs from every number.
        """
        numbers = rng.integers(1, self.largest + 1, size=self.numbers).tolist()
        if (found := random_target(numbers, self.least_target, self.largest_target, rng)) is None:
            return None
        answer, target = found
        given = shuffled(rng, numbers)
        question = _QUESTION.format(target=target, numbers=", ".join(map(str, given)))
        return Draft(question, answer, f"{target} from {sorted(given)}", {"numbers": given, "target": target})

    def solves(self, meta: Meta, answer: str) -> bool:
        """Return whether the expression has the target's value and uses only given numbers."""
        reading = read_expression(answer, meta["target"])
        return uses_each_at_most_once(reading.numbers, meta["numbers"]) and reading.value() == meta["target"]

    def guess(self, meta: Meta, rng: np.random.Generator) -> str:
        """Return a random expression with two or more of the numbers."""
        count = int(rng.integers(2, len(meta["numbers"]) + 1))
        return random_expression(shuffled(rng, meta["numbers"])[:count], rng)


register("rstar2/Countdown-v0", Countdown)
