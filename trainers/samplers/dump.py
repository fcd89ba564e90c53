"""``dump``: a bandit over kinds of problems that favours kinds with large advantages (DUMP, arXiv 2504.09710)."""

# This module is longer than most parts because it reports figures and has a state for checkpoints.

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np

from rstar2_env.core.options.declare import Count, Rule, Seed, checked
from rstar2_env.core.saved_attributes import SavedAttributes
from rstar2_env.problems import ProblemSource

from .base import SAMPLERS, GroupResult, Start
from .kinds import Kinds


class Dump(SavedAttributes):
    r"""A bandit over kinds of problems, by the mean size of their advantages (DUMP, arXiv 2504.09710).

    The value of a kind is the mean absolute advantage of its latest episodes. A start has kind $i$ with probability
    $\operatorname{softmax}(\frac{u}{\text{temperature}})_i$, where $u_i = v_i + \sqrt{\frac{2 \ln(N + 1)}{n_i + 1}}$,
    $v_i$ is the value of kind $i$, and $n_i$ of the $N$ episodes so far are of this kind, as in the authors' code. A
    kind that is mastered, or far too hard, has advantages near 0 and is drawn less often; because of the second
    summand, its probability never becomes 0. Use ``dump`` for a mixture of domains or levels if you do not know which
    of them the policy learns most from.

    Args:
        seed: Seed of all draws.
        problems: The environment's source of problems.
        by: Field of the problems that names their kind, if the source is not a mixture.
        order: The kinds to use; all by default.
        window: Number of latest episodes of a kind over which its mean is computed. If only a part of a group lies in
            the window, each of its episodes counts with the group's mean.
        temperature: Temperature of the softmax over the kinds.

    Raises:
        ConfigurationError: There are fewer than two kinds of problems.
    """

    saved = ("_kinds", "_drawn", "_counts", "_sizes")

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
        self._sizes: dict[str, list[tuple[int, float]]] = {name: [] for name in self._kinds.names}

    @property
    def shares(self) -> dict[str, float]:
        """Return the probability of each kind."""
        total = sum(self._counts.values())
        bounds = np.array(
            [
                self._mean(sizes) + math.sqrt(2 * math.log(total + 1) / (self._counts[name] + 1))
                for name, sizes in self._sizes.items()
            ]
        )
        weights = np.exp((bounds - bounds.max()) / self._temperature)
        return dict(zip(self._counts, (weights / weights.sum()).tolist(), strict=True))

    def draw(self, n: int) -> list[Start]:
        """Draw the ``reset`` arguments of the next ``n`` groups, and advance the state; see ``Sampler``."""
        found = self._kinds.draw_by(self.shares, n, before=self._drawn)
        self._drawn += n
        return found

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Update the mean absolute advantage of each kind of problem."""
        for outcome in outcomes:
            if outcome.episodes and outcome.start.kind in self._counts:
                kind = outcome.start.kind
                self._counts[kind] += outcome.episodes
                self._sizes[kind].append((outcome.episodes, outcome.advantage))
                while sum(count for count, _ in self._sizes[kind][1:]) >= self._window:
                    del self._sizes[kind][0]

    def _mean(self, sizes: Sequence[tuple[int, float]]) -> float:
        """Return the mean absolute advantage of the latest ``window`` episodes of a kind; 0 without episodes.

        Args:
            sizes: Number of episodes and mean absolute advantage of each group, oldest first.
        """
        room, total = self._window, 0.0
        for count, size in reversed(sizes):
            total += min(count, room) * size
            room -= min(count, room)
        return total / (self._window - room) if sizes else 0.0

    def figures(self) -> dict[str, float]:
        """Return numbers about the next draws, by name, for the log; see ``ReportsFigures``."""
        return {f"share/{name}": share for name, share in self.shares.items()}


SAMPLERS.register("dump", Dump)
