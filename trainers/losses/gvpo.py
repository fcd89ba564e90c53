"""``gvpo``: fit what a group's log-probabilities say about its rewards, by least squares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rstar2_env.core.options.declare import CheckedOptions, option

from .base import LOSSES, Figures, FloatArray, Need
from .batch_tokens import BatchTokens
from .tokens import Tokens

if TYPE_CHECKING:
    from torch import Tensor

    from ..ranks import Ranks

_DISTANCE, _SLOPE, _SHARE = "gvpo/distance", "gvpo/slope", "gvpo/share"


@dataclass(frozen=True)
class Gvpo(CheckedOptions):
    """((R - mean R) - A)^2 / (2 (n - 1)) of a row, with R = beta log(pi / pi_old) of the row: GVPO (arXiv 2504.19599).

    R is the reward that the policy's change implies; its mean is over the n rows of the group, and A is the reward less
    the group's mean (``group_mean``). The optimum is unique, that of reward maximization with a KL constraint, whatever
    sampled the rows. In the first update on a rollout it is the policy gradient of ``reinforce`` times
    beta / (n - 1). It acts on rows without an advantage too, so it is no policy gradient here: all rows are computed,
    and nothing is corrected. The loss of a row is divided over its tokens: with the aggregation ``const_len:length=1``
    it is the mean over rows. With an advantage for each token, A is their mean.

    Args:
        beta: Weight of the KL constraint, by which rewards are scaled.
    """

    beta: float = option(0.1, above=0)

    needs: ClassVar[frozenset[Need]] = frozenset({"old"})
    policy_gradient: ClassVar[bool] = False

    def prepare(self, batch: BatchTokens, ranks: Ranks, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """See ``Prepares``."""
        lengths = batch.lengths()
        real = np.maximum(lengths, 1)

        def of_rows(values: FloatArray) -> FloatArray:
            return np.bincount(batch.row, values, minlength=len(lengths)).astype(np.float64)

        implied = self.beta * of_rows(batch.logp - batch.old)
        advantage = of_rows(batch.advantage) / real
        sums: dict[int, FloatArray] = {}  # of each group, all of whose rows are here
        for row in np.flatnonzero(lengths):
            group = int(batch.groups[row])
            sums[group] = sums.get(group, np.zeros(3)) + np.array([1.0, implied[row], advantage[row]])
        size, *totals = np.array([sums.get(group, np.ones(3)) for group in batch.groups.tolist()]).reshape(-1, 3).T
        mean, level = (total / size for total in totals)
        distance = implied - mean - advantage
        others = np.where(size > 1, size - 1, np.inf)  # a row that is alone has nothing to be compared with
        # The gradient of the group's mean adds the mean of the advantages, which is 0 where they are centred.
        columns = {_DISTANCE: distance, _SLOPE: (distance + level) * self.beta / others, _SHARE: 1 / (others * real)}
        return {name: values[batch.row] for name, values in columns.items()}

    def __call__(self, tokens: Tokens) -> Tensor:
        """See ``Term``."""
        value = tokens.column(_DISTANCE).square() / 2 * tokens.column(_SHARE)
        change = tokens.logp - tokens.logp.detach()  # 0, with the gradient of log pi
        return value + tokens.column(_SLOPE) * change

    def figures(self, tokens: Tokens) -> Figures:
        """The mean absolute distance of implied reward and advantage, over tokens."""
        distance = tokens.column(_DISTANCE).abs().masked_fill(~tokens.mask, 0.0)
        return {"gvpo/distance": (distance.sum(), tokens.mask.sum())}


LOSSES.register("gvpo", Gvpo)
