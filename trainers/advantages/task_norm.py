"""``task_norm``: the advantages of another estimator, normalized per task: AgentRL (arXiv 2510.04206).

The result is (A_t - mean) / (std + eps), where A_t is the other estimator's advantage, and mean and std are over all
policy tokens of the batch with the same task, ``Episode.task``. A task with large advantages or long episodes then does
not change the weights more than other tasks. Use it for mixtures of environments. With
``of=(reinforce:baseline=none)`` the estimator is the task-relative REINFORCE++ of Multi-Agent Evolve, where the roles
are the tasks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import option

from ..ranks import Ranks
from .base import ADVANTAGES, Advantages, sums_by_task
from .tokens import scaled, weighed
from .wrapped import Wrapped


@dataclass(frozen=True)
class TaskNorm(Wrapped):
    r"""Advantages of the inner estimator ``of``, normalized over the tokens of each task: AgentRL (arXiv 2510.04206).

    The advantage is $\frac{A_t - \text{mean}}{\text{std} + \text{eps}}$ over all policy tokens of the batch with the
    same task, where $A_t$ is the inner advantage.

    Args:
        of: The inner estimator, written as in a recipe: ``rloo``, ``(gigpo:omega=0.5,gamma=1)``, ``./mine.py:Mine``.
        eps: Added to the deviation, which has $n - 1$ degrees of freedom.
    """

    of_batch: ClassVar[bool] = True
    eps: float = option(1e-4, least=0)

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """Return the advantage of each episode of each group; see ``Advantage``."""
        values = self.inner(groups, ranks)
        pairs = [
            (episode.task, *weighed(value, episode))
            for group, own in zip(groups, values, strict=True)
            for episode, value in zip(group, own, strict=True)
        ]
        counts = sums_by_task(ranks, [(task, float(each.sum())) for task, _, each in pairs])
        totals = sums_by_task(ranks, [(task, float(own @ each)) for task, own, each in pairs])
        means = {task: total / max(counts[task], 1.0) for task, total in totals.items()}
        deviations = [(task, float(np.square(own - means[task]) @ each)) for task, own, each in pairs]
        squares = sums_by_task(ranks, deviations)
        spreads = {task: math.sqrt(total / max(counts[task] - 1, 1.0)) for task, total in squares.items()}
        return [
            [
                scaled(value, means[episode.task], spreads[episode.task], self.eps)
                for episode, value in zip(group, own, strict=True)
            ]
            for group, own in zip(groups, values, strict=True)
        ]


ADVANTAGES.register("task_norm", TaskNorm)
