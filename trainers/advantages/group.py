"""Group-relative advantages: compare an episode's reward with the rewards of its group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import CheckedOptions, option

from ..ranks import Ranks
from .base import ADVANTAGES, Advantages, FloatArray, GroupAdvantage, centred, deviation, moments, rewards


@dataclass(frozen=True)
class GroupNorm(GroupAdvantage):
    r"""$\frac{r - \text{mean}}{\text{std} + \text{eps}}$ with std over $n - 1$: GRPO (arXiv 2402.03300, section 4.1.2).

    The rewards' scale does not affect a problem's weight, and rare successes have the largest weight. This is
    the usual choice, for rewards of any kind.

    Args:
        eps: Added to the deviation; 1e-4 as in TRL (verl adds 1e-6).
    """

    eps: float = option(1e-4, least=0)

    def estimate(self, group: Sequence[Episode]) -> FloatArray:
        """Return the advantage of each episode of a group; see ``GroupAdvantage``."""
        values = rewards(group)
        return _over(centred(values), deviation(values) + self.eps)


@dataclass(frozen=True)
class GroupMean(GroupAdvantage):
    r"""$r - \text{mean}$, the reward minus the group's mean: Dr. GRPO (arXiv 2503.20783, section 3.2).

    Without a division by the deviation, problems that are nearly always or never solved do not get more weight than
    other problems. Use it for rewards with a common scale, such as correct or wrong.
    """

    def estimate(self, group: Sequence[Episode]) -> FloatArray:
        """Return the advantage of each episode of a group; see ``GroupAdvantage``."""
        return centred(rewards(group))


@dataclass(frozen=True)
class LeaveOneOut(GroupAdvantage):
    r"""Reward minus the others' mean reward, $\frac{n}{n - 1} (r - \text{mean})$: RLOO (arXiv 2402.14740, section 3).

    The baseline excludes the episode's own reward, so the gradient of small groups is not too small. Apart from the
    factor $\frac{n}{n - 1}$, the advantages are the same as with ``group_mean``.
    """

    def estimate(self, group: Sequence[Episode]) -> FloatArray:
        """Return the advantage of each episode of a group; see ``GroupAdvantage``."""
        return centred(rewards(group)) * (len(group) / max(len(group) - 1, 1))


@dataclass(frozen=True)
class GroupMeanBatchStd(CheckedOptions):
    r"""$\frac{r - \text{mean of the group}}{\text{std of the batch} + \text{eps}}$: Lite PPO (arXiv 2508.08221).

    The formula is from section 4 of the paper. One standard deviation for all problems of a step avoids amplifying
    groups with nearly equal rewards. Use it for small groups, and for rewards with more than two values. The batch
    covers all processes and includes the groups that a selector rejected.

    Args:
        eps: Added to the deviation.
        of: Rewards whose deviation is used: the ``"raw"`` rewards, as in TRL, or the rewards ``"centred"`` on the means
            of their groups; the paper allows both readings.
    """

    least: ClassVar[int] = 2
    of_batch: ClassVar[bool] = True
    eps: float = option(1e-4, least=0)
    of: Literal["raw", "centred"] = "raw"

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """Return the advantage of each episode of each group; see ``Advantage``."""
        raw = [rewards(group) for group in groups]
        own = [centred(values) for values in raw]
        _, spread = moments(np.concatenate([*(raw if self.of == "raw" else own), np.zeros(0)]), ranks)
        return [list(map(float, _over(values, spread + self.eps))) for values in own]


def _over(values: FloatArray, divisor: float) -> FloatArray:
    """Return ``values / divisor``; zeros if the divisor is 0, since the values are then 0 too."""
    return values / divisor if divisor else np.zeros_like(values)


ADVANTAGES.register("group_norm", GroupNorm)
ADVANTAGES.register("group_mean", GroupMean)
ADVANTAGES.register("rloo", LeaveOneOut)
ADVANTAGES.register("group_mean_batch_std", GroupMeanBatchStd)
