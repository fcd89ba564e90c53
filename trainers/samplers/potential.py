"""``potential``: adds problems in stages, most learnable first (R1-Code-Interpreter, arXiv 2505.21668)."""

# This module is longer than most parts because it reports figures and has a state for checkpoints.

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rstar2_env.core.options.declare import Count, Seed, checked
from rstar2_env.core.saved_attributes import SavedAttributes
from rstar2_env.problems import ProblemSource

from .base import SAMPLERS, GroupResult, Start
from .listed import Listed
from .rates import Rates


def potential(rate: float) -> float:
    """Return the improvement potential of a problem: 4 p (1 - p), which is 1 at a pass rate of one half."""
    return 4 * rate * (1 - rate)


class Potential(SavedAttributes):
    """Train in stages that add problems of decreasing potential $4 p (1 - p)$ (R1-Code-Interpreter, arXiv 2505.21668).

    Here $p$ is the pass rate of a problem at the start of training. Problems are divided into ``stages`` parts of equal
    size by decreasing potential. The first stage trains on the first part, and each later stage adds the next part.
    Use this sampler for diverse tasks if the policy always or never solves most of them at the start.

    Args:
        ids: Ids of the problems of a finite source.
        seed: Seed of all draws.
        problems: The environment's source of problems.
        stages: Number of parts into which the problems are divided.
        steps: Rollouts of a stage; ``None`` ends a stage when all its problems were drawn once.
        rates: Folder of an evaluation with the pass rate of each problem; without it, a first pass over all problems
            measures it. The paper plays 20 episodes of each problem.
        pool: Number of problems taken from an unlimited source.

    Raises:
        ConfigurationError: The environment has no problems to choose from, or ``rates`` is not an evaluation of them.
    """

    saved = ("_list", "_rates", "_stage", "_observed", "_drawn", "_order")

    @checked
    def __init__(
        self,
        ids: Sequence[str] | None = None,
        seed: Seed = 0,
        problems: ProblemSource | None = None,
        *,
        stages: Count = 4,
        steps: Count | None = None,
        rates: str = "",
        pool: Count = 512,
    ) -> None:
        self._list = Listed(ids, problems, pool, seed)
        self._stages, self._steps = stages, steps
        self._rates = Rates()
        if rates:
            self._rates.read(rates, self._list.place)
        self._stage, self._observed, self._drawn = (1 if rates else 0), 0, 0
        self._order = self._ordered() if rates else list(range(len(self._list)))

    @property
    def stage(self) -> int:
        """Number of the current stage, from 1; 0 while the potentials are measured."""
        return self._stage

    @property
    def problems(self) -> list[str]:
        """The problems of the current stage, by decreasing potential."""
        return [self._list.ids[place] for place in self._order[: self._size()]]

    def draw(self, n: int) -> list[Start]:
        """Draw the ``reset`` arguments of the next ``n`` groups, and advance the state; see ``Sampler``."""
        self._drawn += n
        return self._list.draw(n, self._order[: self._size()])

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Record pass rates before the first stage, and start the next stage when the current one ends."""
        self._observed += 1
        if self._stage == 0:
            self._rates.observe(outcomes, self._list.place)
            over = self._drawn >= len(self._list)
        else:
            over = self._drawn >= self._size() if self._steps is None else self._observed >= self._steps
        if over and self._stage < self._stages:
            if self._stage == 0:
                self._order = self._ordered()
            self._stage, self._observed, self._drawn = self._stage + 1, 0, 0

    def figures(self) -> dict[str, float]:
        """Return numbers about the next draws, by name, for the log; see ``ReportsFigures``."""
        return {"stage": float(self._stage), "problems": float(self._size())}

    def _size(self) -> int:
        """Return the number of problems in the stage, including those of earlier stages."""
        return len(self._list) if self._stage == 0 else -(-len(self._list) * self._stage // self._stages)

    def _ordered(self) -> list[int]:
        """Return all problems by decreasing potential; problems that were never measured come last."""
        rates = [self._rates.of(name) for name in self._list.ids]
        self._rates = Rates()  # each later stage keeps this order
        sizes = np.array([-1.0 if rate is None else potential(rate) for rate in rates])
        return [int(place) for place in np.argsort(-sizes, kind="stable")]


SAMPLERS.register("potential", Potential)
