"""``wrong_by_turns``: what a wrong answer costs, by how long the policy tried (GRPO-TCR, arXiv 2510.11701).

Wrong: min(-0.6, -1 + 0.1 (turns - 2) / 2), where turns are those of both sides; right: 0. The paper adds it to 1 for a
right answer, which is the component ``outcome``.
"""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.episode import Episode
from rstar2_env.rewards.base import REWARDS, RewardContext


@dataclass(frozen=True, slots=True)
class WrongByTurns:
    """What a wrong answer costs, less the more turns were tried; a right one nothing (GRPO-TCR, arXiv 2510.11701).

    ``min(-0.6, -1 + 0.1 * (turns - 2) / 2)``, where turns are those of both sides: -1 at 2, -0.8 at 6, -0.6 from 10 on.
    """

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """From -1 to -0.6 for a wrong answer, and 0 for a right one."""
        if episode.correct:
            return 0.0
        turns = max(2, 2 * episode.turns)
        return min(-0.6, -1 + 0.1 * (turns - 2) / 2)


REWARDS.register("wrong_by_turns", WrongByTurns)
