"""``rstar2/Alphametic-v0``: find the digit of each letter in a sum of words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rstar2_env.env.puzzle_env import Draft, Meta, Puzzle, knob, register, split_of
from rstar2_env.worlds import alphametic

_QUESTION = """\
In this sum every letter stands for a digit, different letters for different digits, and no number begins with 0:
{total_line}
Which digit is each letter? Answer with every letter and its digit, like this: {example}."""


@dataclass(frozen=True)
class Alphametic(Puzzle):
    r"""Find the digit of each letter in a sum of words, such as SEND + MORE = MONEY.

    ## Puzzle
    ``addends`` numbers of ``length`` digits are drawn. The numbers and their sum contain ``letters`` different digits
    in total. A random letter replaces each digit. A solver finds exactly one solution. Different letters stand for
    different digits, and no number begins with 0.

    ## Answer
    Every letter once with its digit, in any order: ``A=1, B=2`` or ``A: 1; B: 2`` or one pair per line. Letters are
    capital. Between a letter and its digit there is ``=``, ``:``, ``->`` or nothing; between pairs there are commas,
    semicolons, white space or "and".

    ## Difficulty
    ``addends=2`` (2 to 4), ``length=5`` (3 to 7), ``letters=6`` (4 to 10, less than twice the length). Generating an
    instance is slow if few sums have a unique solution: use a length of 6 for 8 letters, and of 7 for 10.

    ## Random baseline
    0.0: the player draws different digits without a leading zero; hardly any draw is right.
    """

    name = "alphametic"
    random_baseline = 0.0
    addends: int = knob(2, 2, 4)
    length: int = knob(5, 3, 7)
    letters: int = knob(6, 4, 10)

    def __post_init__(self) -> None:
        super().__post_init__()
        # With more letters, almost no sum has a unique solution: the search would take minutes and fail.
        self.require("letters", 4, min(10, 2 * self.length - 1))

    def draw(self, rng: np.random.Generator, split: str) -> Draft | None:
        """Draw sums until a sum belongs to the split and has a unique solution after letters replace its digits.

        The result is ``None`` if no drawn sum meets both conditions.
        """
        for parts, whole in alphametic.random_sums(self.addends, self.length, self.letters, rng):
            key = f"{'+'.join(map(str, sorted(parts)))}={whole}"
            addends, total, digits = alphametic.encoded(parts, whole, rng)
            if split_of(key) != split or not alphametic.is_unique(addends, total):
                continue
            example = ", ".join(f"{letter}={place}" for place, letter in enumerate(list(digits)[:2])) + ", ..."
            question = _QUESTION.format(total_line=f"{' + '.join(addends)} = {total}", example=example)
            return Draft(question, alphametic.written(digits), key, {"addends": addends, "total": total})
        return None

    def solves(self, meta: Meta, answer: str) -> bool:
        """Return whether the sum is correct with the digits that the answer gives to the letters."""
        digits = alphametic.read_digits(answer, meta["addends"], meta["total"])
        return alphametic.holds(meta["addends"], meta["total"], digits)

    def guess(self, meta: Meta, rng: np.random.Generator) -> str:
        """Return random different digits, without a leading zero."""
        return alphametic.written(alphametic.random_digits(meta["addends"], meta["total"], rng))


register("rstar2/Alphametic-v0", Alphametic)
