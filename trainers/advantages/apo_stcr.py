"""``apo_stcr``: penalizes wrong episodes more if they are longer than correct ones: APO's STCR (arXiv 2506.21655).

If a wrong episode is longer than the mean length L of the group's correct episodes, its advantage is multiplied by 2 -
base^-(length - L), which is at most 2; by default, ``base`` is 1.00001. Lengths count the policy's tokens. STCR is one
of two parts of Asymmetric Policy Optimization; the other part is ``apo_dads``, a term of the loss. Use it against
overthinking: long wrong answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import option

from ..ranks import Ranks
from .base import ADVANTAGES, Advantages, FloatArray
from .wrapped import Wrapped


@dataclass(frozen=True)
class ApoStcr(Wrapped):
    r"""Advantages of the inner estimator ``of``, amplified for long wrong episodes: APO's STCR (arXiv 2506.21655).

    The advantage of a wrong episode is $(2 - \text{base}^{-n}) A$, where $A$ is its inner advantage, and $n \ge 0$ the
    number of tokens by which it is longer than the group's average correct episode. Only negative advantages change; a
    group without a correct episode is left unchanged.

    Args:
        of: The inner estimator, written as in a recipe: ``rloo``, ``(gigpo:omega=0.5,gamma=1)``, ``./mine.py:Mine``.
        base: Base of the power; the larger the base, the sooner the factor approaches 2.
    """

    base: float = option(1.00001, above=1)

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """Return the advantage of each episode of each group; see ``Advantage``."""
        return [self._shaped(group, own) for group, own in zip(groups, self.inner(groups, ranks), strict=True)]

    def _shaped(self, group: Sequence[Episode], values: Sequence[float | FloatArray]) -> list[float | FloatArray]:
        lengths = [episode.policy_tokens for episode in group if episode.correct]
        if not lengths:
            return list(values)
        mean = sum(lengths) / len(lengths)
        return [
            value if episode.correct else value * self._factor(value, episode.policy_tokens - mean)
            for episode, value in zip(group, values, strict=True)
        ]

    def _factor(self, value: float | FloatArray, over: float) -> float | FloatArray:
        factor = 2.0 - self.base ** -max(over, 0.0)
        return np.where(np.asarray(value) < 0, factor, 1.0)


ADVANTAGES.register("apo_stcr", ApoStcr)
