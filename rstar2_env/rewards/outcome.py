"""``outcome``: a score for a correct and for a wrong episode, independent of the environment's reward."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.episode import Episode
from rstar2_env.rewards.base import REWARDS, RewardContext


@dataclass(frozen=True, slots=True)
class OutcomeReward:
    """One number for a correct episode and another for a wrong one, instead of the environment's reward (``return``).

    Attributes:
        correct: Score of a correct episode.
        wrong: Score of a wrong episode, also of an episode without an answer.
    """

    correct: float = 1.0
    wrong: float = 0.0

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """Return ``correct`` or ``wrong``."""
        return self.correct if episode.correct else self.wrong


REWARDS.register("outcome", OutcomeReward)
