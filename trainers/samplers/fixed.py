"""Samplers: choose the ``reset`` arguments of each group of a step.

Covered: an endless sequence of fresh seeds, and shuffled passes over a fixed list of problems. Both depend only on a
seed and the step, so that a resumed run continues exactly. Not covered: samplers that adapt to results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options import CheckedOptions, Seed


@dataclass(frozen=True, slots=True)
class Start:
    """The arguments of the ``reset`` with which every episode of a group starts."""

    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)


class Sampler(Protocol):
    """Chooses the starts of each step's groups."""

    def starts(self, step: int, count: int) -> list[Start]:
        """Return ``count`` starts for one optimizer step; the same step always gives the same starts."""
        ...


@dataclass(frozen=True)
class SeedSampler(CheckedOptions):
    """Gives every group a fresh seed, from which the environment picks a problem.

    Args:
        seed: Seed from which all others are derived.

    Raises:
        ConfigurationError: The seed is negative.
    """

    seed: Seed = 0

    def starts(self, step: int, count: int) -> list[Start]:
        """See ``Sampler``."""
        words = np.random.SeedSequence([self.seed, step]).generate_state(count, np.uint64)
        return [Start(int(word >> np.uint64(1))) for word in words]


class ProblemSampler:
    """Goes through a list of problems again and again, each pass in a new random order.

    Step ``s`` takes the problems from position ``s * count`` on, so no problem repeats within a pass as long as every
    step asks for the same number of starts.

    Args:
        problem_ids: Ids of the problems.
        seed: Seed from which orders and episode seeds are derived.

    Raises:
        ConfigurationError: There is no problem, or the seed is negative.
    """

    def __init__(self, problem_ids: Sequence[str], seed: int = 0) -> None:
        if not problem_ids:
            raise ConfigurationError("ProblemSampler needs at least one problem id.")
        self._ids = list(problem_ids)
        self._seeds = SeedSampler(seed)
        self._order: tuple[int, Sequence[int]] = (-1, ())

    def starts(self, step: int, count: int) -> list[Start]:
        """See ``Sampler``."""
        return [
            Start(start.seed, {"problem_id": self._ids[self._at(step * count + i)]})
            for i, start in enumerate(self._seeds.starts(step, count))
        ]

    def _at(self, position: int) -> int:
        epoch, within = divmod(position, len(self._ids))
        if self._order[0] != epoch:
            rng = np.random.default_rng(np.random.SeedSequence([self._seeds.seed, epoch, 1]))
            self._order = (epoch, rng.permutation(len(self._ids)).tolist())
        return self._order[1][within]
