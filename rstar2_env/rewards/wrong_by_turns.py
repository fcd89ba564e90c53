"""``wrong_by_turns``: a penalty for a wrong answer that shrinks with the number of turns (GRPO-TCR, arXiv 2510.11701).

Wrong: min(-0.6, -1 + 0.1 (turns - 2) / 2), counting the turns of the policy and of the environment; correct: 0. The
paper adds it to 1 for a correct answer, which is the component ``outcome``.
"""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.episode import Episode
from rstar2_env.rewards.base import REWARDS, RewardContext


@dataclass(frozen=True, slots=True)
class WrongByTurns:
    """A penalty for a wrong answer, smaller with more turns; 0 for a correct answer (GRPO-TCR, arXiv 2510.11701).

    ``min(-0.6, -1 + 0.1 * (turns - 2) / 2)``, counting the turns of the policy and of the environment: -1 at 2, -0.8 at
    6, -0.6 from 10 on.
    """

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """Return a number from -1 to -0.6 for a wrong answer, and 0 for a correct answer."""
        if episode.correct:
            return 0.0
        turns = max(2, 2 * episode.turns)
        return min(-0.6, -1 + 0.1 * (turns - 2) / 2)


REWARDS.register("wrong_by_turns", WrongByTurns)
