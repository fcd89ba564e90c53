"""``tool_use``: a bonus for calling tools in right answers (AgentMath, arXiv 2512.20745).

Right: min(most, base + each N) for N calls; wrong: 0. The paper does not give the constants; those here are this
package's. rStar2's authors found that penalising tool errors hurts; this does not.
"""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.episode import Episode
from rstar2_env.rewards.base import REWARDS, RewardContext


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A right answer's bonus for each tool call, up to a maximum; a wrong one has none (AgentMath, arXiv 2512.20745).

    ``min(most, base + each * calls)``.

    Attributes:
        each: For one call that counts.
        base: In any right answer.
        most: The highest bonus.
    """

    each: float = 0.02
    base: float = 0.0
    most: float = 0.1

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """The bonus, and 0 for a wrong answer."""
        if not episode.correct:
            return 0.0
        return min(self.most, self.base + self.each * episode.tool_calls)


REWARDS.register("tool_use", ToolUse)
