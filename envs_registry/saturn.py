"""``rstar2/Saturn-v0``: find an assignment that satisfies a formula (SATURN), at a difficulty that a formula tells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from rstar2_env.errors import ConfigurationError
from rstar2_env.problems import Draft
from rstar2_env.puzzle_env import PuzzleEnv, register
from rstar2_env.worlds.puzzle import Puzzle, UnreadableAnswerError
from rstar2_env.worlds.reading import plain

_LETTERS = "ABCDEFGHIJKLMNOPQRST"

_QUESTION = """\
Find values for the variables {names} that make this formula true. Each group of letters is a clause, true if at least \
one of its literals is; ! means not, & means and:
{formula}
Answer with {count} digits, the values of {names} in this order: 1 for true, 0 for false."""


@dataclass(frozen=True)
class Saturn(Puzzle):
    """SAT instances with a planted solution.

    Args:
        clause_size: Variables in a clause, n.
        variables: Variables in all, k.
        clauses: Distinct clauses, l; at most C(k, n)(2^n - 1) can be.

    Raises:
        ConfigurationError: A knob is out of its range.
    """

    name: ClassVar[str] = "saturn"
    clause_size: int = 3
    variables: int = 5
    clauses: int = 20

    def __post_init__(self) -> None:
        self.require("variables", 2, len(_LETTERS))
        self.require("clause_size", 1, min(self.variables, 8))
        self.require("clauses", 1, math.comb(self.variables, self.clause_size) * (2**self.clause_size - 1))

    def draw(self, rng: np.random.Generator, split: str) -> Draft:
        """Draw distinct clauses that one random assignment satisfies."""
        bits = [int(bit) for bit in rng.integers(2, size=self.variables)]
        choices = _choices(self.variables, self.clause_size)
        patterns = 2**self.clause_size - 1
        numbers = rng.choice(len(choices) * patterns, size=self.clauses, replace=False)
        clauses = []
        for number in numbers.tolist():
            chosen, pattern = choices[number // patterns], number % patterns + 1
            # A bit of the pattern says that its literal agrees with the solution; at least one of them is set.
            agree = [pattern >> place & 1 for place in range(self.clause_size)]
            clauses.append([v + 1 if bits[v] == fits else -(v + 1) for v, fits in zip(chosen, agree, strict=True)])
        clauses.sort(key=written)
        formula = " & ".join(map(written, clauses))
        names = ", ".join(_LETTERS[: self.variables])
        return Draft(
            question=_QUESTION.format(names=names, formula=formula, count=self.variables),
            answer="".join(map(str, bits)),
            key=f"{self.variables} {formula}",
            meta={
                "variables": self.variables,
                "clauses": clauses,
                "difficulty": round(difficulty(self.clause_size, self.variables, self.clauses), 3),
            },
        )

    def solves(self, meta: Mapping[str, Any], answer: str) -> bool:
        """Whether every clause holds; any satisfying assignment counts."""
        bits = "".join(plain(answer).replace(",", " ").split())
        if len(bits) != meta["variables"] or set(bits) - {"0", "1"}:
            raise UnreadableAnswerError(f"expected {meta['variables']} digits 0 or 1, got {answer[:80]!r}")
        return satisfies(meta["clauses"], [bit == "1" for bit in bits])

    def guess(self, meta: Mapping[str, Any], rng: np.random.Generator) -> str:
        """Random bits."""
        return "".join(map(str, rng.integers(2, size=meta["variables"]).tolist()))


@lru_cache(maxsize=8)
def _choices(variables: int, size: int) -> list[tuple[int, ...]]:
    return list(combinations(range(variables), size))


def written(clause: Sequence[int]) -> str:
    """A clause as text: ``[1, 2, -3]`` is ``AB!C``."""
    return "".join(("!" if literal < 0 else "") + _LETTERS[abs(literal) - 1] for literal in clause)


def satisfies(clauses: Sequence[Sequence[int]], values: Sequence[bool]) -> bool:
    """Whether every clause has a true literal."""
    return all(any(values[abs(literal) - 1] == (literal > 0) for literal in clause) for clause in clauses)


def solutions(clauses: Sequence[Sequence[int]], variables: int) -> Iterator[str]:
    """Every satisfying assignment, by trying all."""
    for number in range(2**variables):
        bits = format(number, f"0{variables}b")
        if satisfies(clauses, [bit == "1" for bit in bits]):
            yield bits


def difficulty(clause_size: int, variables: int, clauses: int) -> float:
    """SATURN's estimate D(n, k, l) = log2 k + 2 log2 l - n + k/n.

    Raises:
        ConfigurationError: A number is not positive.
    """
    if min(clause_size, variables, clauses) < 1:
        raise ConfigurationError(f"Expected positive numbers, got ({clause_size}, {variables}, {clauses}).")
    return math.log2(variables) + 2 * math.log2(clauses) - clause_size + variables / clause_size


class SaturnEnv(PuzzleEnv):
    r"""Satisfy a formula in conjunctive normal form; any satisfying assignment counts.

    ## Puzzle
    ``AB!C & !BCD``: each group of letters is a clause, ``!`` negates. A random assignment is drawn, then distinct
    clauses of ``clause_size`` variables that it satisfies, uniformly among all such.

    ## Answer
    One 0 or 1 for each variable, in the order of the alphabet; white space and commas between them do not matter.

    ## Difficulty
    ``clause_size=3``, ``variables=5``, ``clauses=20``. ``meta["difficulty"]`` is D(n, k, l) = log2 k + 2 log2 l - n +
    k/n, 9.632 here. The curricula of SATURN (F26): (3, 5, 5) to (3, 5, 6) for 1.5B parameters, (3, 5, 13) to (3, 5, 15)
    for 7B. Without a box the reward is 0, not SATURN's -1.

    ## Random baseline
    0.077: a random assignment. Small instances are easy to guess: 0.51 at (3, 5, 5), 0.13 at (3, 5, 15), 0.0135 at
    (3, 7, 40), 0.52 at (6, 7, 40). Read every score beside it.

    ## Version history
    v0: the first.
    """

    puzzle = Saturn
    random_baseline = 0.077


register("rstar2/Saturn-v0", SaturnEnv)
