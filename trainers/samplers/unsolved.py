"""``unsolved``: leave out the problems that the policy solves every time (rStar2-Agent, arXiv 2508.20722).

Stage 3 of the paper (section 4.3) begins after step 385 with the problems of which 8 episodes of the latest policy were
not all right: 17.3K of 42K. Problems are left out once; the others come in shuffled passes, each equally often. Longer
than most parts, since it tells where it stands, and its state goes into every checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rstar2_env.core.options.declare import Count, Seed, checked
from rstar2_env.problems import ProblemSource

from .base import SAMPLERS, Outcome, Start
from .listed import Listed
from .rates import Rates


class Unsolved:
    """Uniform, without what is always solved: the filter of stage 3 (rStar2-Agent, arXiv 2508.20722, section 4.3).

    The paper plays 8 episodes of every problem once, between two stages: measure them so (``rstar2 eval``) and give the
    folder as ``rates``, with which a run begins. Without it, the latest episodes of training decide after ``after``
    steps, which costs nothing; what was not played that often stays.

    Args:
        ids: Ids of the problems of a finite source.
        seed: Seed of all draws.
        problems: The environment's source.
        after: Steps of training after which the problems are left out; with ``rates``, they are from the start.
        episodes: Latest episodes that must all be right.
        rates: Folder of an evaluation that says which problems are solved; "" for none.
        pool: Number of problems taken from an unlimited source.

    Raises:
        ConfigurationError: The environment has no problems to choose from, or ``rates`` is no evaluation of them.
    """

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
            self._solved, self._after = self._found(), 0

    @property
    def left(self) -> int:
        """Problems that are not left out."""
        return len(self._list) - len(self._solved)

    def draw(self, n: int) -> list[Start]:
        """See ``Sampler``."""
        allowed = np.ones(len(self._list), dtype=bool)
        allowed[self._solved] = False
        return [self._list.start(self._list.next(allowed)) for _ in range(n)]

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Keep account until the problems are left out."""
        self._steps += 1
        if self._steps > self._after:
            return
        for outcome in outcomes:
            if outcome.start.problem_id in self._list.place:
                self._rates.add(outcome.start.problem_id, outcome.successes, outcome.episodes)
        if self._steps == self._after:
            self._solved = self._found()

    def figures(self) -> dict[str, float]:
        """See ``Tells``."""
        return {"problems": float(self.left)}

    def state_dict(self) -> dict[str, Any]:
        """See ``Sampler``."""
        rates = {} if self._steps >= self._after else self._rates.state_dict()
        return {"list": self._list.state_dict(), "steps": self._steps, "solved": self._solved, "rates": rates}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See ``Sampler``."""
        self._list.load_state_dict(state["list"])
        self._rates.load_state_dict(state["rates"])
        self._steps, self._solved = int(state["steps"]), list(state["solved"])

    def _found(self) -> list[int]:
        return [
            place
            for name, place in self._list.place.items()
            if self._rates.of(name) == 1.0 and self._rates.episodes(name) >= self._episodes
        ]


SAMPLERS.register("unsolved", Unsolved)
