"""``uniform``: draws every problem equally often, in shuffled passes; without a list of problems, draws new seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Seed, checked
from rstar2_env.core.saved_attributes import SavedAttributes

from .base import SAMPLERS, GroupResult, Start


class Uniform(SavedAttributes):
    """Draw the problems in repeated passes, each in a new random order; every group has a new seed.

    The draw at position ``n`` of the run depends only on the seed and ``n``, not on the number of starts per step. No
    problem repeats within a pass.

    Args:
        ids: Ids of the problems; ``None`` lets the environment choose by the seed.
        seed: Seed from which orders and seeds are derived.

    Raises:
        ConfigurationError: The list of problems is empty, or the seed is negative.
    """

    saved = ("_cursor",)

    @checked
    def __init__(self, ids: Sequence[str] | None = None, seed: Seed = 0) -> None:
        if ids is not None and not ids:
            raise ConfigurationError(
                "There is no problem to draw, because the list of problem ids is empty: give at least one id."
            )
        self._ids = None if ids is None else list(ids)
        self._seed = seed
        self._cursor = 0
        self._pass: tuple[int, list[int]] = (-1, [])

    def draw(self, n: int) -> list[Start]:
        """Draw the ``reset`` arguments of the next ``n`` groups, and advance the state; see ``Sampler``."""
        first, self._cursor = self._cursor, self._cursor + n
        return [Start(self._seed_at(position), self._options_at(position)) for position in range(first, self._cursor)]

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Do nothing: the draws do not depend on results."""

    def _seed_at(self, position: int) -> int:
        word = np.random.SeedSequence([self._seed, position]).generate_state(1, np.uint64)[0]
        return int(word >> np.uint64(1))

    def _options_at(self, position: int) -> dict[str, Any]:
        if self._ids is None:
            return {}
        number, within = divmod(position, len(self._ids))
        if self._pass[0] != number:
            rng = np.random.default_rng(np.random.SeedSequence([self._seed, number, 1]))
            self._pass = (number, rng.permutation(len(self._ids)).tolist())
        return {"problem_id": self._ids[self._pass[1][within]]}


SAMPLERS.register("uniform", Uniform)
