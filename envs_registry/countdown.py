"""``rstar2/Countdown-v0``: reach a target with some of the given numbers, each used at most once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rstar2_env.errors import ConfigurationError
from rstar2_env.problems import Draft
from rstar2_env.puzzle_env import PuzzleEnv, register
from rstar2_env.worlds.expressions import (
    random_expression,
    random_whole_expression,
    read_expression,
    uses_each_at_most_once,
)
from rstar2_env.worlds.puzzle import Puzzle, shuffled

_QUESTION = """\
Make {target} from the numbers {numbers}: write an expression with +, -, *, / and parentheses that uses each of these \
numbers at most once, not necessarily all, and no other number. Division is exact. Answer with the expression."""

_TRIES = 40


@dataclass(frozen=True)
class Countdown(Puzzle):
    """Numbers, and a target that an expression over all of them reaches through whole numbers alone.

    Args:
        numbers: How many numbers are given.
        largest: Each of them is from 1 to this.
        least_target: Least target.
        largest_target: Largest target.

    Raises:
        ConfigurationError: A knob is out of its range.
    """

    name: ClassVar[str] = "countdown"
    numbers: int = 4
    largest: int = 50
    least_target: int = 10
    largest_target: int = 100

    def __post_init__(self) -> None:
        self.require("numbers", 2, 8)
        self.require("largest", 2, 1000)
        self.require("least_target", 1, 1_000_000)
        self.require("largest_target", 1, 1_000_000)
        if self.least_target > self.largest_target:
            raise ConfigurationError(
                f"least_target of {self.name} must not be above largest_target, {self.least_target} is above "
                f"{self.largest_target}."
            )

    def draw(self, rng: np.random.Generator, split: str) -> Draft | None:
        """Draw numbers and combine them at random, until the value is a target and not one of the numbers itself."""
        numbers = rng.integers(1, self.largest + 1, size=self.numbers).tolist()
        for _ in range(_TRIES):
            found = random_whole_expression(numbers, rng)
            if found is None or not self.least_target <= found[1] <= self.largest_target or found[1] in numbers:
                continue
            answer, target = found
            given = shuffled(rng, numbers)
            question = _QUESTION.format(target=target, numbers=", ".join(map(str, given)))
            return Draft(question, answer, f"{target} from {sorted(given)}", {"numbers": given, "target": target})
        return None

    def solves(self, meta: Mapping[str, Any], answer: str) -> bool:
        """Whether the expression has the target's value and uses no number that is not given."""
        reading = read_expression(answer, meta["target"])
        return uses_each_at_most_once(reading.numbers, meta["numbers"]) and reading.value() == meta["target"]

    def guess(self, meta: Mapping[str, Any], rng: np.random.Generator) -> str:
        """A random expression over two or more of the numbers."""
        count = int(rng.integers(2, len(meta["numbers"]) + 1))
        return random_expression(shuffled(rng, meta["numbers"])[:count], rng)


class CountdownEnv(PuzzleEnv):
    r"""Reach a target with + - * / and parentheses over some of the given numbers, each at most once.

    ## Puzzle
    ``numbers`` numbers from 1 to ``largest`` are drawn and combined at random, through positive whole numbers alone; a
    value from ``least_target`` to ``largest_target`` that is not one of the numbers becomes the target. So every
    instance can be solved, with all of the numbers at least.

    ## Answer
    An expression, as in ``rstar2/Game24-v0``. Fractions on the way are allowed. Any solution counts. It is read by a
    parser of our own and computed exactly; nothing in it is ever run.

    ## Difficulty
    ``numbers=4`` (2 to 8), ``largest=50``, ``least_target=10``, ``largest_target=100``.

    ## Random baseline
    0.006: a random expression over a random choice of two or more of the numbers.

    ## Version history
    v0: the first.
    """

    puzzle = Countdown
    random_baseline = 0.006


register("rstar2/Countdown-v0", CountdownEnv)
