"""Disjoint splits: a hash of the question decides, so no question is in two splits.

Adding, removing or reordering problems does not move other problems between splits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from itertools import accumulate

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.problems.prepare.duplicates import question_key
from rstar2_env.problems.problem import Problem

_HASHES = 1 << 64


def split_questions(problems: Iterable[Problem], shares: Mapping[str, float]) -> dict[str, list[Problem]]:
    """Divide problems into splits.

    Args:
        problems: The problems.
        shares: The share of each split, above 0; they add up to 1.

    Returns:
        The problems of each split, in the given order; a split may be empty if there are few problems.

    Raises:
        ConfigurationError: The shares are not positive, or do not add up to 1.
    """
    if not shares or any(share <= 0 for share in shares.values()) or abs(sum(shares.values()) - 1) > 1e-9:
        raise ConfigurationError(f"The shares of the splits must be above 0 and add up to 1, not {dict(shares)}.")
    found: dict[str, list[Problem]] = {name: [] for name in shares}
    names, ends = list(shares), list(accumulate(shares.values()))
    for problem in problems:
        digest = blake2b(b"split\n" + question_key(problem.question), digest_size=8).digest()
        place = int.from_bytes(digest, "big") / _HASHES
        found[names[min(bisect_right(ends, place), len(names) - 1)]].append(problem)
    return found
