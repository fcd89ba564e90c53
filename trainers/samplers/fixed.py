"""Samplers: which ``reset`` each group of a step starts from.

Covered: fresh seeds without end, and shuffled passes over a fixed list of problems. Both are functions of a seed and
the step, so that a resumed run continues exactly. Not covered: samplers that learn from results.
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
    """What a group's ``reset`` is called with."""

    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)


class Sampler(Protocol):
    """Chooses what the groups of a step start from."""

    def starts(self, step: int, count: int) -> list[Start]:
        """The starts of one optimizer step, ``count`` of them; the same for the same step."""
        ...


@dataclass(frozen=True)
class SeedSampler(CheckedOptions):
    """A fresh seed for every group: the environment picks its problem from it.

    Args:
        seed: Root of all seeds.

    Raises:
        ConfigurationError: The seed is negative.
    """

    seed: Seed = 0

    def starts(self, step: int, count: int) -> list[Start]:
        """See ``Sampler``."""
        words = np.random.SeedSequence([self.seed, step]).generate_state(count, np.uint64)
        return [Start(int(word >> np.uint64(1))) for word in words]


class ProblemSampler:
    """Passes over a list of problems, each in a new random order; no problem comes twice before all came once.

    That holds as long as every step asks for as many starts: step ``s`` takes them from the place ``s * count`` on.

    Args:
        problem_ids: The problems.
        seed: Root of all seeds.

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
