"""``tool_use``: a bonus for calling tools. rStar2's authors found that penalising tool errors hurts; this does not."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.episode import Episode
from rstar2_env.rewards.base import REWARDS, RewardContext


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A bonus for each tool call, up to a maximum: ``min(most, base + each * calls)`` (AgentMath; gate it "correct").

    Attributes:
        each: For one call that counts.
        base: In any case.
        most: The highest bonus.
    """

    each: float = 0.02
    base: float = 0.0
    most: float = 0.1

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """The bonus."""
        return min(self.most, self.base + self.each * episode.tool_calls)


REWARDS.register("tool_use", ToolUse)
