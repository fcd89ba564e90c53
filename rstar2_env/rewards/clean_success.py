"""``clean_success``: success, lowered by the penalty that Resample-on-Correct uses (arXiv 2508.20722, Eqs. 4 and 5).

The selector ``roc`` trains more often on successes with a low penalty, so its expected update is not the gradient of
the success rate. This reward states the same preference as an objective. An unbiased estimator, such as
``advantage=rloo``, follows the gradient of this objective.
"""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.rewards.base import REWARDS, RewardContext
from rstar2_env.rewards.roc_penalty import format_penalty


@dataclass(frozen=True)
class CleanSuccess(CheckedOptions):
    r"""$1 - \text{cost} \frac{\text{penalty}}{2}$ for a correct episode, 0 for a wrong one.

    The penalty is $p_\text{err} + p_\text{format}$, from 0 to 2. $p_\text{err}$ is the share of failed calls; in an
    episode without a call, it is the option ``no_call``. $p_\text{format}$ is 1 without an answer tag, else
    $\min(1, \frac{\text{tags} - 1}{\text{turns}})$, where tags counts the answer tags.

    Attributes:
        cost: Largest amount that is subtracted, in [0, 1], so a correct episode never earns less than a wrong one.
        no_call: $p_\text{err}$ of an episode without a call, from 0 to 1; GRPO-RoC uses 0.5.
    """

    cost: float = option(1.0, least=0, most=1)
    no_call: float = option(0.0, least=0, most=1)

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """Return the score, in [0, 1]."""
        if not episode.correct:
            return 0.0
        share = episode.error_share
        failed = self.no_call if share is None else share
        return 1.0 - self.cost * (failed + format_penalty(episode)) / 2


REWARDS.register("clean_success", CleanSuccess)
