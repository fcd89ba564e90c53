"""``unsolved``: excludes problems that the policy always solves (rStar2-Agent, arXiv 2508.20722).

Stage 3 of the paper (section 4.3) starts after step 385 with the problems that the latest policy did not solve in all
of 8 episodes: 17.3K of 42K. Problems are excluded once; the remaining problems are drawn in shuffled passes, each
equally often.
"""

# This module is longer than most parts because it reports figures and has a state for checkpoints.

from __future__ import annotations

from collections.abc import Sequence

from rstar2_env.core.options.declare import Count, Seed, checked
from rstar2_env.core.saved_attributes import SavedAttributes
from rstar2_env.problems import ProblemSource

from .base import SAMPLERS, GroupResult, Start
from .listed import Listed
from .rates import Rates


class Unsolved(SavedAttributes):
    """Draw uniformly among the problems that are not always solved (rStar2-Agent, arXiv 2508.20722, section 4.3).

    Before its third stage, rStar2-Agent plays 8 episodes of every problem. To do the same, evaluate the problems with
    ``rstar2 eval``, and pass the evaluation's folder as ``rates``. Without ``rates``, problems are excluded once
    ``after`` rollouts are done, according to their latest training episodes; problems with fewer than ``episodes``
    episodes are kept.

    Args:
        ids: Ids of the problems of a finite source.
        seed: Seed of all draws.
        problems: The environment's source of problems.
        after: Rollouts after which problems are excluded; with ``rates``, they are excluded from the start.
        episodes: Number of latest episodes that must all be correct.
        rates: Folder of an evaluation with the pass rate of each problem; "" for none.
        pool: Number of problems taken from an unlimited source.

    Raises:
        ConfigurationError: The environment has no problems to choose from, or ``rates`` is not an evaluation of them.
    """

    saved = ("_list", "_steps", "_solved", "_rates")

    @checked
    def __init__(
        self,
        ids: Sequence[str] | None = None,
        seed: Seed = 0,
        problems: ProblemSource | None = None,
        *,
        after: Count = 385,
        episodes: Count = 8,
        rates: str = "",
        pool: Count = 512,
    ) -> None:
        self._list = Listed(ids, problems, pool, seed)
        self._after, self._episodes, self._steps = after, episodes, 0
        self._rates = Rates(episodes)
        self._solved: list[int] = []
        if rates:
            self._rates.read(rates, self._list.place)
            self._exclude()
            self._after = 0

    @property
    def left(self) -> int:
        """Number of problems that are not excluded."""
        return len(self._list) - len(self._solved)

    def draw(self, n: int) -> list[Start]:
        """Draw the ``reset`` arguments of the next ``n`` groups, and advance the state; see ``Sampler``."""
        return self._list.draw(n, set(range(len(self._list))).difference(self._solved))

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Record the results of a rollout; once ``after`` rollouts are recorded, exclude the solved problems."""
        self._steps += 1
        if self._steps > self._after:
            return
        self._rates.observe(outcomes, self._list.place)
        if self._steps == self._after:
            self._exclude()

    def figures(self) -> dict[str, float]:
        """Return numbers about the next draws, by name, for the log; see ``ReportsFigures``."""
        return {"problems": float(self.left)}

    def _exclude(self) -> None:
        self._solved = [
            place
            for name, place in self._list.place.items()
            if self._rates.of(name) == 1.0 and self._rates.episodes(name) >= self._episodes
        ]
        self._rates = Rates()  # problems are excluded only once


SAMPLERS.register("unsolved", Unsolved)
