"""``mopps``: plays problems whose predicted difficulty is medium (MoPPS, arXiv 2507.04632)."""

# This module is longer than most parts because it reports figures and has a state for checkpoints.

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import Count, Rule, Seed, checked
from rstar2_env.core.options.rules import FromRun
from rstar2_env.core.saved_attributes import SavedAttributes
from rstar2_env.problems import ProblemSource

from .base import SAMPLERS, GroupResult, Start
from .listed import Listed
from .rates import Rates

Share = Annotated[float, Rule(least=0, most=1)]


class Mopps(SavedAttributes):
    r"""Thompson sampling of problems whose pass rate is near a target (MoPPS, arXiv 2507.04632).

    The pass rate of a problem has a posterior $\operatorname{Beta}(\alpha, \beta)$, initially
    $\operatorname{Beta}(1, 1)$. For a step of $B$ groups, the next ``candidates`` times $B$ problems of a shuffled pass
    compete: a rate is drawn from each posterior, and the $B$ problems whose rates are closest to ``target`` are played.
    After $s$ successes in $k$ episodes, $\alpha$ is set to $\text{decay} \, \alpha + (1 - \text{decay}) + s$, and
    $\beta$ to $\text{decay} \, \beta + (1 - \text{decay}) + k - s$.

    Use this sampler if many problems are always or never solved, so their groups have no gradient: unlike a refill, it
    does not play groups that are then discarded. Refills of the same step use the next best candidates.

    Args:
        ids: Ids of the problems of a finite source.
        seed: Seed of all draws.
        problems: The environment's source of problems.
        batch: Groups per step ($B$); ``None`` uses the run's ``problems_per_step``, or 8 without a run.
        candidates: Candidates per group: 16 for mathematics in the paper, 8 for countdown.
        target: The target pass rate.
        decay: Weight of earlier results; 1 gives all episodes the same weight. The paper uses 0.5 if the policy changes
            quickly.
        rule: ``"nearest"`` orders candidates by the distance of their drawn rates to ``target``; ``"band"`` first takes
            candidates with a rate from ``low`` to ``high``, in the order of the pass, then those closest to the band.
        low: Lower end of the band.
        high: Upper end of the band.
        rates: Folder of an evaluation that initializes the posteriors; "" for none.
        weight: Number of episodes that an evaluated pass rate counts for.
        pool: Number of problems taken from an unlimited source.

    Raises:
        ConfigurationError: The environment has no problems to choose from, ``rates`` is not an evaluation of them, or
            ``low`` is above ``high``.
    """

    saved = ("_list", "alpha", "beta", "_round", "_order", "_taken")

    @checked
    def __init__(
        self,
        ids: Sequence[str] | None = None,
        seed: Seed = 0,
        problems: ProblemSource | None = None,
        *,
        batch: Annotated[Count | None, FromRun("rollout.problems_per_step")] = None,
        candidates: Count = 16,
        target: Share = 0.5,
        decay: Share = 1.0,
        rule: Literal["nearest", "band"] = "nearest",
        low: Share = 0.3,
        high: Share = 0.7,
        rates: str = "",
        weight: Annotated[float, Rule(least=0)] = 3.0,
        pool: Count = 512,
    ) -> None:
        if low > high:
            raise ConfigurationError(f"The option low={low} must not be greater than high={high}.", option="low")
        self._list = Listed(ids, problems, pool, seed)
        self._seed, self._decay = seed, decay
        self._band = (low, high) if rule == "band" else (target, target)
        self._size = min((batch or 8) * candidates, len(self._list))
        self.alpha, self.beta = np.ones(len(self._list)), np.ones(len(self._list))
        if rates:
            known = Rates()
            known.read(rates, self._list.place)
            for name, place in self._list.place.items():
                if (rate := known.of(name)) is not None:
                    self.alpha[place] += weight * rate
                    self.beta[place] += weight * (1 - rate)
        self._round, self._order, self._taken = 0, list[int](), 0

    def draw(self, n: int) -> list[Start]:
        """Draw the ``reset`` arguments of the next ``n`` groups, and advance the state; see ``Sampler``."""
        return [self._list.start(self._next()) for _ in range(n)]

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Update the posteriors; the next draw starts with new candidates."""
        for outcome in outcomes:
            place = self._list.place.get(outcome.start.problem_id)
            if place is not None and outcome.episodes:
                for counts, seen in (
                    (self.alpha, outcome.successes),
                    (self.beta, outcome.episodes - outcome.successes),
                ):
                    counts[place] = self._decay * counts[place] + (1 - self._decay) + seen
        self._order, self._taken = [], 0

    def figures(self) -> dict[str, float]:
        """Return numbers about the next draws, by name, for the log; see ``ReportsFigures``."""
        return {"expected": float(np.mean(self.alpha / (self.alpha + self.beta)))}

    def _next(self) -> int:
        if self._taken == len(self._order):
            candidates: dict[int, None] = {}
            while len(candidates) < self._size:  # a new pass may start with a problem that is already a candidate
                candidates[self._list.next()] = None
            self._order, self._taken = self._ordered(list(candidates)), 0
        self._taken += 1
        return self._order[self._taken - 1]

    def _ordered(self, places: list[int]) -> list[int]:
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, self._round, 5]))
        self._round += 1
        drawn = rng.beta(self.alpha[places], self.beta[places])
        low, high = self._band
        outside = np.maximum(np.maximum(low - drawn, drawn - high), 0)
        return [places[at] for at in np.argsort(outside, kind="stable")]


SAMPLERS.register("mopps", Mopps)
