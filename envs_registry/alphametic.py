"""``rstar2/Alphametic-v0``: which digit is which letter, from a sum in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rstar2_env.problems import Draft, split_of
from rstar2_env.puzzle_env import PuzzleEnv, register
from rstar2_env.worlds.alphametic import holds, interchangeable, is_unique
from rstar2_env.worlds.puzzle import Puzzle, UnreadableAnswerError
from rstar2_env.worlds.reading import plain

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BATCH = 128
_PAIR = re.compile(r"([A-Z]) ?(?:=|:|->|→|\\to|\\rightarrow)? ?([0-9])(?![0-9])")
_BETWEEN = re.compile(r"(?:[\s,;.{}()\[\]]|\band\b)*", re.IGNORECASE)

_QUESTION = """\
In this sum every letter stands for a digit, different letters for different digits, and no number begins with 0:
{total_line}
Which digit is each letter? Answer with every letter and its digit, like this: {example}."""


@dataclass(frozen=True)
class Alphametic(Puzzle):
    """Sums in random letters with exactly one solution.

    Args:
        addends: How many numbers are added.
        length: Digits of each of them.
        letters: Different letters in the whole sum.

    Raises:
        ConfigurationError: A knob is out of its range.
    """

    name: ClassVar[str] = "alphametic"
    addends: int = 2
    length: int = 5
    letters: int = 6

    def __post_init__(self) -> None:
        self.require("addends", 2, 4)
        self.require("length", 3, 7)
        # More letters than this leave next to no sum with one solution, and a search of minutes to find none.
        self.require("letters", 4, min(10, 2 * self.length - 1))

    def draw(self, rng: np.random.Generator, split: str) -> Draft | None:
        """Draw sums of numbers by the batch, and return the first that stays unique when its digits become letters."""
        least = 10 ** (self.length - 1)
        numbers = rng.integers(least, 10 * least, size=(_BATCH, self.addends))
        sums = np.column_stack([numbers, numbers.sum(axis=1)])
        # The digits of each sum as a set of bits; a sum has a digit more than its addends, and may have none there.
        places = 10 ** np.arange(self.length + 1)
        digits = np.where(sums[..., None] >= places, 1 << (sums[..., None] // places % 10), 0)
        masks = np.bitwise_or.reduce(digits.reshape(_BATCH, -1), axis=1)
        for row in np.flatnonzero([int(mask).bit_count() == self.letters for mask in masks]):
            *parts, whole = sums[row].tolist()
            key = f"{'+'.join(map(str, sorted(parts)))}={whole}"
            code = dict(zip("0123456789", _letters(rng), strict=True))
            *addends, total = ("".join(code[digit] for digit in str(number)) for number in (*parts, whole))
            if split_of(key) != split or interchangeable(addends, total) or not is_unique(addends, total):
                continue
            used = sorted({*"".join(addends), *total})
            digit_of = {letter: int(digit) for digit, letter in code.items()}
            question = _QUESTION.format(
                total_line=f"{' + '.join(addends)} = {total}",
                example=", ".join(f"{letter}={place}" for place, letter in enumerate(used[:2])) + ", ...",
            )
            answer = ", ".join(f"{letter}={digit_of[letter]}" for letter in used)
            return Draft(question, answer, key, {"addends": addends, "total": total})
        return None

    def solves(self, meta: Mapping[str, Any], answer: str) -> bool:
        """Whether the letters' digits make the sum come out."""
        text = " ".join(plain(answer).split())
        pairs = _PAIR.findall(text)
        letters = sorted({*"".join(meta["addends"]), *meta["total"]})
        if not _BETWEEN.fullmatch(_PAIR.sub(" ", text)) or sorted(letter for letter, _ in pairs) != letters:
            raise UnreadableAnswerError(f"expected a digit for each of {', '.join(letters)}, got {answer[:80]!r}")
        return holds(meta["addends"], meta["total"], {letter: int(digit) for letter, digit in pairs})

    def guess(self, meta: Mapping[str, Any], rng: np.random.Generator) -> str:
        """Random different digits, none of them a zero in front."""
        letters = sorted({*"".join(meta["addends"]), *meta["total"]})
        leading = {word[0] for word in (*meta["addends"], meta["total"])}
        while True:
            digits = dict(zip(letters, rng.permutation(10).tolist(), strict=False))
            if all(digits[letter] for letter in leading):
                return ", ".join(f"{letter}={digit}" for letter, digit in digits.items())


def _letters(rng: np.random.Generator) -> list[str]:
    return [_ALPHABET[int(place)] for place in rng.permutation(len(_ALPHABET))[:10]]


class AlphameticEnv(PuzzleEnv):
    r"""Find the digit of each letter in a sum of words, such as SEND + MORE = MONEY.

    ## Puzzle
    ``addends`` numbers of ``length`` digits whose sum has ``letters`` different digits in all become words of random
    letters. A solver finds exactly one solution. Different letters are different digits, no word begins with 0.

    ## Answer
    Every letter once with its digit, in any order: ``A=1, B=2`` or ``A: 1; B: 2`` or a line each. Letters are capital;
    ``=``, ``:``, ``->`` or nothing between the two; commas, semicolons, white space, "and" between pairs.

    ## Difficulty
    ``addends=2`` (2 to 4), ``length=5`` (3 to 7), ``letters=6`` (4 to 10, less than twice the length). Where solutions
    are seldom unique an instance takes long: 8 letters go well with a length of 6, and 10 with 7.

    ## Random baseline
    0.0: random different digits with no zero in front; about 8 in a million.

    ## Version history
    v0: the first.
    """

    puzzle = Alphametic
    random_baseline = 0.0


register("rstar2/Alphametic-v0", AlphameticEnv)
