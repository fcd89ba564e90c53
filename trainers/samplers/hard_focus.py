"""``hard_focus``: trains on all problems first, then on a shrinking set of the hardest (DRIVE, arXiv 2511.06307).

Stage 1 of the paper trains on many problems uniformly, with 8 episodes each. Stage 2 trains on a small set of hard
problems, with 64 episodes each; the hardest problems stay in the set throughout. The speed of narrowing is an option
here.
"""

# This module is longer than most parts because it reports figures and has a state for checkpoints.

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from rstar2_env.core.options.declare import Count, Rule, Seed, checked
from rstar2_env.core.saved_attributes import SavedAttributes
from rstar2_env.problems import ProblemSource

from .base import SAMPLERS, GroupResult, Start
from .listed import Listed
from .rates import Rates


class HardFocus(SavedAttributes):
    """Draws from all problems, and then from a shrinking set of the hardest (DRIVE, arXiv 2511.06307, stage 2).

    Use this sampler for a second stage with large groups, once the policy solves most problems. The latest group of a
    problem, or an evaluation, determines its difficulty.

    Args:
        ids: Ids of the problems of a finite source.
        seed: Seed of all draws.
        problems: The environment's source of problems.
        after: Rollouts of the uniform stage; ``None`` ends it when every problem was drawn once. With ``rates``, there
            is no uniform stage.
        keep: Share of the problems in the set that remain after each narrowing; the hardest problems remain.
        every: Rollouts between two narrowings.
        least: Minimum number of problems in the set.
        rates: Folder of an evaluation with the pass rate of each problem; "" for none.
        pool: Number of problems taken from an unlimited source.

    Raises:
        ConfigurationError: The environment has no problems to choose from, or ``rates`` is not an evaluation of them.
    """

    saved = ("_list", "_rates", "_steps", "_focused", "_hardest")

    @checked
    def __init__(
        self,
        ids: Sequence[str] | None = None,
        seed: Seed = 0,
        problems: ProblemSource | None = None,
        *,
        after: Count | None = None,
        keep: Annotated[float, Rule(above=0, below=1)] = 0.5,
        every: Count = 50,
        least: Count = 32,
        rates: str = "",
        pool: Count = 512,
    ) -> None:
        self._list = Listed(ids, problems, pool, seed)
        self._after, self._keep, self._every, self._least = after, keep, every, least
        self._rates = Rates()
        self._steps, self._focused = 0, -1
        self._hardest = list(range(len(self._list)))
        if rates:
            self._rates.read(rates, self._list.place)
            self._narrow()

    @property
    def problems(self) -> list[str]:
        """The problems that can be drawn."""
        return [self._list.ids[place] for place in self._hardest]

    def draw(self, n: int) -> list[Start]:
        """Draw the ``reset`` arguments of the next ``n`` groups, and advance the state; see ``Sampler``."""
        return self._list.draw(n, self._hardest)

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Record the results; narrow the set at the end of the uniform stage and every ``every`` rollouts after it."""
        self._rates.observe(outcomes, self._list.place)
        self._steps += 1
        if self._focused < 0:
            over = self._list.passes > 0 if self._after is None else self._steps >= self._after
        else:
            over = self._steps - self._focused >= self._every
        if over:
            self._narrow()

    def figures(self) -> dict[str, float]:
        """Return numbers about the next draws, by name, for the log; see ``ReportsFigures``."""
        return {"problems": float(len(self._hardest))}

    def _narrow(self) -> None:
        """Keep the hardest of the remaining problems; a problem without a result counts as solved."""
        count = max(int(self._keep * len(self._hardest)), min(self._least, len(self._hardest)))
        known = {place: self._rates.of(self._list.ids[place]) for place in self._hardest}
        rates = {place: 1.0 if rate is None else rate for place, rate in known.items()}
        self._hardest, self._focused = sorted(sorted(rates, key=lambda place: rates[place])[:count]), self._steps


SAMPLERS.register("hard_focus", HardFocus)
