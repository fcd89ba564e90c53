"""``tool_use``: a bonus for tool calls in correct answers (AgentMath, arXiv 2512.20745).

A correct answer earns min(``most``, ``base`` + ``each`` N) for N tool calls, and a wrong one 0. The paper does not
state the constants; the defaults are this package's own choice. rStar2's authors found that penalizing tool errors
hurts; this bonus does not penalize them.
"""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.episode import Episode
from rstar2_env.rewards.base import REWARDS, RewardContext


@dataclass(frozen=True, slots=True)
class ToolUse:
    r"""A bonus per tool call of a correct answer, up to a maximum; 0 for a wrong answer (AgentMath, arXiv 2512.20745).

    The bonus is $\min(\text{most}, \text{base} + \text{each} \cdot \text{calls})$.

    Attributes:
        each: Bonus per tool call; ``Episode.tool_calls`` defines which calls count.
        base: Bonus of any correct answer.
        most: Maximum bonus.
    """

    each: float = 0.02
    base: float = 0.0
    most: float = 0.1

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """Return the bonus, or 0 for a wrong answer."""
        if not episode.correct:
            return 0.0
        return min(self.most, self.base + self.each * episode.tool_calls)


REWARDS.register("tool_use", ToolUse)
