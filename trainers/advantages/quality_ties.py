"""``quality_ties``: if all answers of a group are correct, advantages depend on the quality of the tool calls.

The advantage of an episode in such a group is -scale (p - mean) / (std + eps). p is the penalty of Resample-on-Correct:
the share of failed calls (0.5 without a call), plus a penalty for a missing or repeated answer tag. In every other
group, another estimator computes the advantages. Clean calls therefore never count more than a correct answer. By
contrast, a penalty in the reward, or ``call_penalty``, affects every group. The reward does not change. This estimator
is this package's own; use it with the selector of the same name, in addition to GRPO-RoC (arXiv 2508.20722).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import option
from rstar2_env.rewards.roc_penalty import penalty

from ..ranks import Ranks
from ..selectors.quality_ties import tied
from .base import ADVANTAGES, Advantages, FloatArray, centred, deviation
from .wrapped import Wrapped


@dataclass(frozen=True)
class QualityTies(Wrapped):
    r"""Advantages of the inner estimator ``of``; in all-correct groups, failed calls and bad answer tags lower them.

    The advantage in an all-correct group is $-\text{scale} \frac{p - \text{mean}}{\text{std} + \text{eps}}$, where $p$
    is the penalty of Resample-on-Correct: the share of failed calls (0.5 without a call), plus a penalty for a missing
    or repeated answer tag.

    Args:
        of: The inner estimator, written as in a recipe: ``rloo``, ``(gigpo:omega=0.5,gamma=1)``, ``./mine.py:Mine``.
        scale: Weight of an all-correct group; 1 equals the weight of a group with correct and wrong answers.
        eps: Added to the deviation of the penalties.
    """

    scale: float = option(0.5, least=0)
    eps: float = option(1e-4, least=0)

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """Return the advantage of each episode of each group; see ``Advantage``."""
        found = self.inner(groups, ranks)
        return [self._of(group) if tied(group) else own for group, own in zip(groups, found, strict=True)]

    def _of(self, group: Sequence[Episode]) -> list[float | FloatArray]:
        penalties = np.array([penalty(episode) for episode in group])
        return [float(-self.scale * one / (deviation(penalties) + self.eps)) for one in centred(penalties)]


ADVANTAGES.register("quality_ties", QualityTies)
