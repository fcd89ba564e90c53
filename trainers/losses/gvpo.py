"""``gvpo``: least-squares fit of the rewards implied by a group's log-probabilities to the actual rewards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rstar2_env.core.options.declare import CheckedOptions, option

from ..ranks import Ranks
from .base import LOSSES, Figures, FloatArray, LossInput
from .batch_tokens import BatchTokens
from .tokens import Tensor, Tokens

_DISTANCE, _SLOPE, _SHARE = "gvpo/distance", "gvpo/slope", "gvpo/share"


@dataclass(frozen=True)
class Gvpo(CheckedOptions):
    r"""$\frac{((R - \text{mean}) - A)^2}{2 (n - 1)}$ of a row, with $R = \beta (\log \pi - \log \pi_\text{old})$: GVPO.

    $R$ is the reward implied by the policy's change (arXiv 2504.19599), summed over the row; its mean is over the $n$
    rows of the group, and $A$ is the reward minus the group's mean (``group_mean``). For any sampling policy, the loss
    has the same unique optimum as reward maximization with a KL constraint. In the first update on a rollout, the
    gradient is $\frac{\beta}{n - 1}$ times the gradient of ``reinforce``. The term also acts on rows with advantage
    zero, so these rows are not skipped, and no correction is applied. The loss of a row is divided among its tokens:
    with the aggregation ``const_len:length=1``, the total is the mean over rows. If each token has an advantage, $A$ is
    their mean.

    Args:
        beta: Weight of the KL constraint, which scales the rewards.
    """

    beta: float = option(0.1, above=0)

    needs: ClassVar[frozenset[LossInput]] = frozenset({"old"})
    policy_gradient: ClassVar[bool] = False

    def prepare(self, batch: BatchTokens, ranks: Ranks, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return columns that are computed from the whole optimizer batch, (tokens,) each; see ``Prepares``."""
        lengths = batch.lengths()
        real = np.maximum(lengths, 1)

        def of_rows(values: FloatArray) -> FloatArray:
            return np.bincount(batch.row, values, minlength=len(lengths)).astype(np.float64)

        implied = self.beta * of_rows(batch.logp - batch.old)
        advantage = of_rows(batch.advantage) / real
        sums: dict[int, FloatArray] = {}  # per group; all rows of a group are on this process
        for row in np.flatnonzero(lengths):
            group = int(batch.groups[row])
            sums[group] = sums.get(group, np.zeros(3)) + np.array([1.0, implied[row], advantage[row]])
        size, *totals = np.array([sums.get(group, np.ones(3)) for group in batch.groups.tolist()]).reshape(-1, 3).T
        mean, level = (total / size for total in totals)
        distance = implied - mean - advantage
        others = np.where(size > 1, size - 1, np.inf)  # a group with a single row has no comparison
        # The gradient of the group's mean adds the mean of the advantages, which is 0 if they are centred.
        columns = {_DISTANCE: distance, _SLOPE: (distance + level) * self.beta / others, _SHARE: 1 / (others * real)}
        return {name: values[batch.row] for name, values in columns.items()}

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); see ``Term``."""
        value = tokens.column(_DISTANCE).square() / 2 * tokens.column(_SHARE)
        change = tokens.logp - tokens.logp.detach()  # 0, with the gradient of log pi
        return value + tokens.column(_SLOPE) * change

    def figures(self, tokens: Tokens) -> Figures:
        """Return the mean of ``abs((R - mean R) - A)`` over the policy's tokens; see the class."""
        return {"gvpo/distance": tokens.sum_and_count(tokens.column(_DISTANCE).abs())}


LOSSES.register("gvpo", Gvpo)
