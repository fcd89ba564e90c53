"""Formulas in conjunctive normal form: random satisfiable formulas, their text, a solver, their difficulty, answers.

The difficulty is defined in SATURN (arXiv 2505.16368). A clause is a list of literals; a literal is the 1-based number
of a variable, negative if negated. The solver tries every assignment and is meant for tests and small instances.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.worlds.puzzle import UnreadableAnswerError
from rstar2_env.worlds.reading import plain

LETTERS = "ABCDEFGHIJKLMNOPQRST"
"""The variables' names."""


def planted(
    clause_size: int, variables: int, count: int, rng: np.random.Generator
) -> tuple[list[int], list[list[int]]]:
    """Draw an assignment, and then distinct clauses, uniformly among all clauses that the assignment satisfies.

    Args:
        clause_size: Number of variables in a clause.
        variables: Number of variables.
        count: Number of clauses; at most C(variables, clause_size)(2^clause_size - 1) exist.
        rng: The only source of randomness.

    Returns:
        The assignment's bits, and the clauses, sorted by their text (``written``).
    """
    bits = [int(bit) for bit in rng.integers(2, size=variables)]
    choices = _choices(variables, clause_size)
    patterns = 2**clause_size - 1
    clauses = []
    for number in rng.choice(len(choices) * patterns, size=count, replace=False).tolist():
        chosen, pattern = choices[number // patterns], number % patterns + 1
        # A set bit of the pattern means that the literal agrees with the solution; at least one bit is set.
        agree = [pattern >> place & 1 for place in range(clause_size)]
        clauses.append([v + 1 if bits[v] == fits else -(v + 1) for v, fits in zip(chosen, agree, strict=True)])
    return bits, sorted(clauses, key=written)


@lru_cache(maxsize=8)
def _choices(variables: int, size: int) -> list[tuple[int, ...]]:
    return list(combinations(range(variables), size))


def written(clause: Sequence[int]) -> str:
    """A clause as text: ``[1, 2, -3]`` is ``AB!C``."""
    return "".join(("!" if literal < 0 else "") + LETTERS[abs(literal) - 1] for literal in clause)


def read_values(answer: str, variables: int) -> list[bool]:
    """Read an answer that has one 0 or 1 for each variable.

    Raises:
        UnreadableAnswerError: The answer contains anything else.
    """
    bits = "".join(plain(answer).replace(",", " ").split())
    if len(bits) != variables or set(bits) - {"0", "1"}:
        raise UnreadableAnswerError(f"expected {variables} digits 0 or 1, got {answer[:80]!r}")
    return [bit == "1" for bit in bits]


def satisfies(clauses: Sequence[Sequence[int]], values: Sequence[bool]) -> bool:
    """Whether every clause has a true literal."""
    return all(any(values[abs(literal) - 1] == (literal > 0) for literal in clause) for clause in clauses)


def solutions(clauses: Sequence[Sequence[int]], variables: int) -> Iterator[str]:
    """Yield every assignment that satisfies all clauses, as a string of 0 and 1, by trying all assignments."""
    for number in range(2**variables):
        bits = format(number, f"0{variables}b")
        if satisfies(clauses, [bit == "1" for bit in bits]):
            yield bits


def difficulty(clause_size: int, variables: int, clauses: int) -> float:
    """SATURN's estimate of a formula's difficulty: D(n, k, l) = log2 k + 2 log2 l - n + k/n (arXiv 2505.16368).

    Args:
        clause_size: Variables in a clause, n.
        variables: Number of variables, k.
        clauses: Number of clauses, l.

    Raises:
        ConfigurationError: A number is not positive.
    """
    if min(clause_size, variables, clauses) < 1:
        raise ConfigurationError(
            f"(clause_size, variables, clauses) must be positive, not ({clause_size}, {variables}, {clauses})."
        )
    return math.log2(variables) + 2 * math.log2(clauses) - clause_size + variables / clause_size
