"""``difficulty_pool``: draws hard, normal and easy problems with different weights (prime-rl 0.8)."""

# This module is longer than most parts because it reports figures and has a state for checkpoints.

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Count, Rule, Seed, checked
from rstar2_env.core.saved_attributes import SavedAttributes
from rstar2_env.problems import ProblemSource

from .base import SAMPLERS, GroupResult, Start
from .listed import Listed
from .rates import Rates

Weight = Annotated[float, Rule(least=0)]


class DifficultyPool(SavedAttributes):
    """Draws problems with the weight of their pool: hard, normal or easy (prime-rl's ``difficulty_pool``).

    A problem is in the hard pool if the mean reward of its last group was at most ``normal_from``, in the normal pool
    if it was at most ``easy_from``, else in the easy pool; an unseen problem has weight 1. Use this sampler to make
    very hard and very easy problems rare without dropping them. The defaults are prime-rl's.

    Args:
        ids: Ids of the problems of a finite source.
        seed: Seed of all draws.
        problems: The environment's source of problems.
        normal_from: Maximum mean reward of the hard pool.
        easy_from: Maximum mean reward of the normal pool.
        hard: Weight of a problem in the hard pool.
        normal: Weight of a problem in the normal pool.
        easy: Weight of a problem in the easy pool.
        pool: Number of problems taken from an unlimited source.

    Raises:
        ConfigurationError: The environment has no problems to choose from, or the bounds or weights are not valid.
    """

    saved = ("_list", "_rates")

    @checked
    def __init__(
        self,
        ids: Sequence[str] | None = None,
        seed: Seed = 0,
        problems: ProblemSource | None = None,
        *,
        normal_from: float = 0.25,
        easy_from: float = 0.75,
        hard: Weight = 0.2,
        normal: Weight = 1.0,
        easy: Weight = 0.2,
        pool: Count = 512,
    ) -> None:
        if normal_from > easy_from:
            raise ConfigurationError(
                f"The option normal_from={normal_from} must not be greater than easy_from={easy_from}."
            )
        self._list = Listed(ids, problems, pool, seed)
        self._seed, self._bounds = seed, (normal_from, easy_from)
        self._weights = np.array([hard, normal, easy])
        self._rates = Rates()
        self._each = np.ones(len(self._list))
        self._reach = np.cumsum(self._each)

    def draw(self, n: int) -> list[Start]:
        """Draw the ``reset`` arguments of the next ``n`` groups, and advance the state; see ``Sampler``."""
        found = []
        for _ in range(n):
            rng = np.random.default_rng(np.random.SeedSequence([self._seed, self._list.drawn, 6]))
            at = np.searchsorted(self._reach, rng.random() * self._reach[-1], side="right")
            found.append(self._list.start(int(min(at, len(self._list) - 1))))
        return found

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Put the problems of the rollout into their pools."""
        for outcome in outcomes:
            if outcome.start.problem_id in self._list.place:
                self._rates.add(outcome.start.problem_id, outcome.reward * outcome.episodes, outcome.episodes)
        self._weigh({outcome.start.problem_id for outcome in outcomes})

    def figures(self) -> dict[str, float]:
        """Return numbers about the next draws, by name, for the log; see ``ReportsFigures``."""
        rates = [rate for name in self._list.ids if (rate := self._rates.of(name)) is not None]
        hard, normal, easy = np.bincount(np.searchsorted(self._bounds, rates), minlength=3).tolist()
        return {"hard": hard, "normal": normal, "easy": easy, "unseen": float(len(self._list) - len(rates))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state that ``state_dict`` returned; see ``Sampler``."""
        super().load_state_dict(state)
        self._weigh(self._list.place)

    def _weigh(self, names: Iterable[str]) -> None:
        for name in names:
            if (rate := self._rates.of(name)) is not None:
                self._each[self._list.place[name]] = self._weights[np.searchsorted(self._bounds, rate)]
        # If every problem was seen and has weight 0, draw uniformly.
        self._reach = np.cumsum(self._each if self._each.any() else np.ones(len(self._each)))


SAMPLERS.register("difficulty_pool", DifficultyPool)
