"""``rstar2/Saturn-v0``: find values that satisfy a logical formula of known difficulty (SATURN)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rstar2_env.env.puzzle_env import Draft, Meta, Puzzle, knob, register
from rstar2_env.worlds import cnf

_QUESTION = """\
Find values for the variables {names} that make this formula true. Each group of letters is a clause, true if at least \
one of its literals is; ! means not, & means and:
{formula}
Answer with {count} digits, the values of {names} in this order: 1 for true, 0 for false."""


@dataclass(frozen=True)
class Saturn(Puzzle):
    r"""Satisfy a formula in conjunctive normal form.

    ## Puzzle
    ``AB!C & !BCD``: each group of letters is a clause, ``!`` negates. First a random assignment is drawn, then distinct
    clauses of ``clause_size`` variables, uniformly among all clauses that the assignment satisfies.

    ## Answer
    One 0 or 1 for each variable, in alphabetical order; white space and commas between them are ignored. Any satisfying
    assignment counts.

    ## Difficulty
    ``clause_size=3`` (n), ``variables=5`` (k), ``clauses=20`` (l). ``meta["difficulty"]`` is D(n, k, l) = log2 k + 2
    log2 l - n + k/n: 9.632 for the defaults. SATURN (arXiv 2505.16368) trains models of 1.5B parameters with (3, 5,
    5) to (3, 5, 6), and models of 7B with (3, 5, 13) to (3, 5, 15). Without a box the reward is 0, not SATURN's -1.

    ## Random baseline
    0.077: the player draws a random assignment. Small instances are easy to guess: at (n, k, l) = (3, 5, 5) a random
    player earns 0.51, at (3, 5, 15) 0.13, at (3, 7, 40) 0.0135, and at (6, 7, 40) 0.52. Compare every score with this
    baseline.
    """

    name = "saturn"
    random_baseline = 0.077
    clause_size: int = knob(3, 1, 8)
    variables: int = knob(5, 2, len(cnf.LETTERS))
    clauses: int = knob(20, 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("clause_size", 1, min(self.variables, 8))
        self.require("clauses", 1, math.comb(self.variables, self.clause_size) * (2**self.clause_size - 1))

    def draw(self, rng: np.random.Generator, split: str) -> Draft:
        """Draw distinct clauses that one random assignment satisfies."""
        bits, clauses = cnf.planted(self.clause_size, self.variables, self.clauses, rng)
        formula, names = " & ".join(map(cnf.written, clauses)), ", ".join(cnf.LETTERS[: self.variables])
        difficulty = round(cnf.difficulty(self.clause_size, self.variables, self.clauses), 3)
        meta = {"variables": self.variables, "clauses": clauses, "difficulty": difficulty}
        question = _QUESTION.format(names=names, formula=formula, count=self.variables)
        return Draft(question, "".join(map(str, bits)), f"{self.variables} {formula}", meta)

    def solves(self, meta: Meta, answer: str) -> bool:
        """Return whether every clause holds; any satisfying assignment counts."""
        return cnf.satisfies(meta["clauses"], cnf.read_values(answer, meta["variables"]))

    def guess(self, meta: Meta, rng: np.random.Generator) -> str:
        """Return a random assignment as digits 0 and 1."""
        return "".join(str(int(bit)) for bit in rng.integers(2, size=(meta["variables"],)))


register("rstar2/Saturn-v0", Saturn)
