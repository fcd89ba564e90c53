"""``difficulty_pool``: problems weigh by how their last group went: hard, normal or easy (prime-rl 0.8).

Longer than most parts, since it tells where it stands, and its state goes into every checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Count, Rule, Seed, checked
from rstar2_env.problems import ProblemSource

from .base import SAMPLERS, Outcome, Start
from .listed import Listed
from .rates import Rates

Weight = Annotated[float, Rule(least=0)]


class DifficultyPool:
    """Problems drawn by the weight of the pool that their last group put them into (prime-rl's ``difficulty_pool``).

    A problem whose last group had a mean reward of at most ``normal_from`` is in the hard pool, of at most
    ``easy_from`` in the normal one, else in the easy one; an unseen problem weighs 1. Choose it where problems at both
    ends should become rare without being dropped. The defaults are prime-rl's.

    Args:
        ids: Ids of the problems of a finite source.
        seed: Seed of all draws.
        problems: The environment's source.
        normal_from: Mean rewards up to this are the hard pool's.
        easy_from: Mean rewards above it are the easy pool's.
        hard: Weight of a problem of the hard pool.
        normal: Weight of one of the normal pool.
        easy: Weight of one of the easy pool.
        pool: Number of problems taken from an unlimited source.

    Raises:
        ConfigurationError: The environment has no problems to choose from, or the bounds or weights make no sense.
    """

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
            raise ConfigurationError(f"normal_from={normal_from} must be at most easy_from={easy_from}.")
        self._list = Listed(ids, problems, pool, seed)
        self._seed, self._bounds = seed, (normal_from, easy_from)
        self._weights = np.array([hard, normal, easy])
        self._rates = Rates()
        self._each = np.ones(len(self._list))
        self._reach = np.cumsum(self._each)

    def draw(self, n: int) -> list[Start]:
        """See ``Sampler``."""
        found = []
        for _ in range(n):
            rng = np.random.default_rng(np.random.SeedSequence([self._seed, self._list.drawn, 6]))
            at = np.searchsorted(self._reach, rng.random() * self._reach[-1], side="right")
            found.append(self._list.start(int(min(at, len(self._list) - 1))))
        return found

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Put the problems of the step into their pools."""
        for outcome in outcomes:
            if outcome.start.problem_id in self._list.place:
                self._rates.add(outcome.start.problem_id, outcome.reward * outcome.episodes, outcome.episodes)
        self._weigh({outcome.start.problem_id for outcome in outcomes})

    def figures(self) -> dict[str, float]:
        """See ``Tells``."""
        rates = [rate for name in self._list.ids if (rate := self._rates.of(name)) is not None]
        hard, normal, easy = np.bincount(np.searchsorted(self._bounds, rates), minlength=3).tolist()
        return {"hard": hard, "normal": normal, "easy": easy, "unseen": float(len(self._list) - len(rates))}

    def state_dict(self) -> dict[str, Any]:
        """See ``Sampler``."""
        return {"list": self._list.state_dict(), "rates": self._rates.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See ``Sampler``."""
        self._list.load_state_dict(state["list"])
        self._rates.load_state_dict(state["rates"])
        self._weigh(self._list.place)

    def _weigh(self, names: Iterable[str]) -> None:
        for name in names:
            if (rate := self._rates.of(name)) is not None:
                self._each[self._list.place[name]] = self._weights[np.searchsorted(self._bounds, rate)]
        # Where every problem was seen and weighs nothing, each is as good as another.
        self._reach = np.cumsum(self._each if self._each.any() else np.ones(len(self._each)))


SAMPLERS.register("difficulty_pool", DifficultyPool)
