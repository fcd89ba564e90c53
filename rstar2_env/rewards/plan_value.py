"""``plan_value``: success rate of further episodes that start with the same plan (PTA-GRPO, arXiv 2510.01833).

The score is the share of correct episodes among ``rollouts`` further episodes that start with the episode's own text up
to the end of its plan. Every scored episode needs ``rollouts`` further episodes, even if two episodes have the same
plan. An episode earns 0 if its first turn has no plan or ends with the plan. The paper adds this score to the rewards
for the outcome and the format, without stating the weights of the sum; here all weights are 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, Count
from rstar2_env.rewards.base import REWARDS, LanguageModel, Need, RewardContext


@dataclass(frozen=True)
class PlanValue(CheckedOptions):
    """Share of correct episodes among further episodes with the same plan (PTA-GRPO, arXiv 2510.01833).

    Attributes:
        end: Text that ends a plan in the policy's first turn; its first occurrence counts.
        rollouts: Number of further episodes for each scored episode, K in the paper.
    """

    end: str = "</plan>"
    rollouts: Count = 4

    needs: ClassVar[frozenset[Need]] = frozenset({"lm", "play", "tokens"})

    def __post_init__(self) -> None:
        """Check that ``end`` is not empty.

        Raises:
            ConfigurationError: ``end`` is empty.
        """
        super().__post_init__()
        if not self.end:
            raise ConfigurationError(
                "The option `end` must be the text that ends a plan, such as </plan>; it is empty.", option="end"
            )

    async def __call__(self, episode: Episode, ctx: RewardContext) -> float | None:
        """Return a number from 0 to 1; ``None`` if no further episode could be played."""
        assert ctx.lm is not None  # guaranteed by ``needs``
        assert ctx.play is not None
        token = self.planned(episode, ctx.lm)
        if token is None:
            return 0.0
        played = await ctx.play.branch(episode, token, self.rollouts)
        counted = [one.correct for one in played if one.available]
        return sum(counted) / len(counted) if counted else None

    def planned(self, episode: Episode, lm: LanguageModel) -> int | None:
        """Return the number of completion tokens up to the end of the plan.

        ``None`` means that the first turn has no plan, or ends with the plan.
        """
        if not episode.steps:
            return None
        start, stop = episode.steps[0].start, episode.steps[0].stop
        if self.end not in lm.decode(episode.completion_ids[start:stop]):
            return None
        # Search for the first token after which the text so far contains the mark.
        low, high = start, stop
        while low + 1 < high:
            middle = (low + high) // 2
            if self.end in lm.decode(episode.completion_ids[start:middle]):
                high = middle
            else:
                low = middle
        return high if high < stop else None


REWARDS.register("plan_value", PlanValue)
