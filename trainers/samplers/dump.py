"""``dump``: a bandit over kinds of problems that favours those with the largest advantages (DUMP, arXiv 2504.09710).

Longer than most parts, since it tells where it stands, and its state goes into every checkpoint.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from rstar2_env.core.options.declare import Count, Rule, Seed, checked
from rstar2_env.problems import ProblemSource

from .base import SAMPLERS, Outcome, Start
from .kinds import Kinds


class Dump:
    """A bandit over kinds of problems, by the mean size of their advantages (DUMP, arXiv 2504.09710).

    What a kind can teach is the mean absolute advantage of its latest groups, and a start is of kind i with

        UCB_i = mean_i + sqrt(2 ln(N + 1) / (n_i + 1)),  P_i = softmax(UCB / temperature)_i,

    for n_i groups of the kind among N. A kind that is mastered, or far too hard, has advantages near 0 and is left for
    another; the second summand goes back to it now and then. Choose it for a mixture of domains or levels of which
    nobody knows which one teaches most.

    Args:
        seed: Seed of all draws.
        problems: The environment's source.
        by: Field of the problems that names their kind, where the source is no mixture.
        order: The kinds to use; all by default.
        window: Groups of a kind over which its mean is taken.
        temperature: Of the softmax over the kinds.

    Raises:
        ConfigurationError: There are not two kinds of problems.
    """

    @checked
    def __init__(
        self,
        seed: Seed = 0,
        problems: ProblemSource | None = None,
        *,
        by: str = "source",
        order: tuple[str, ...] = (),
        window: Count = 300,
        temperature: Annotated[float, Rule(above=0)] = 0.1,
    ) -> None:
        self._kinds = Kinds(problems, by, order, seed=seed)
        self._window, self._temperature = window, temperature
        self._drawn = 0
        self._counts = dict.fromkeys(self._kinds.names, 0)
        self._sizes = {name: deque[float](maxlen=window) for name in self._kinds.names}

    @property
    def shares(self) -> dict[str, float]:
        """How likely each kind is."""
        total = sum(self._counts.values())
        bounds = np.array(
            [
                (math.fsum(sizes) / len(sizes) if sizes else 0.0)
                + math.sqrt(2 * math.log(total + 1) / (self._counts[name] + 1))
                for name, sizes in self._sizes.items()
            ]
        )
        weights = np.exp((bounds - bounds.max()) / self._temperature)
        return dict(zip(self._counts, (weights / weights.sum()).tolist(), strict=True))

    def draw(self, n: int) -> list[Start]:
        """See ``Sampler``."""
        found = self._kinds.draw_by(self.shares, n, before=self._drawn)
        self._drawn += n
        return found

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Learn the size of the advantages of each kind."""
        for outcome in outcomes:
            if outcome.episodes and outcome.start.kind in self._counts:
                self._counts[outcome.start.kind] += 1
                self._sizes[outcome.start.kind].append(outcome.advantage)

    def figures(self) -> dict[str, float]:
        """See ``Tells``."""
        return {f"share/{name}": share for name, share in self.shares.items()}

    def state_dict(self) -> dict[str, Any]:
        """See ``Sampler``."""
        return {
            "kinds": self._kinds.state_dict(),
            "drawn": self._drawn,
            "counts": dict(self._counts),
            "sizes": {name: list(sizes) for name, sizes in self._sizes.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See ``Sampler``."""
        self._kinds.load_state_dict(state["kinds"])
        self._drawn, self._counts = int(state["drawn"]), dict(state["counts"])
        self._sizes = {name: deque(sizes, self._window) for name, sizes in state["sizes"].items()}


SAMPLERS.register("dump", Dump)
