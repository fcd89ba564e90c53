"""``outcome``: the verdict alone, whatever the environment pays for it."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.episode import Episode
from rstar2_env.rewards.base import REWARDS, RewardContext


@dataclass(frozen=True, slots=True)
class OutcomeReward:
    """One number for a correct episode and another for a wrong one; ``return`` is what the environment pays instead.

    Attributes:
        correct: For a correct episode.
        wrong: For a wrong one, and for one without an answer.
    """

    correct: float = 1.0
    wrong: float = 0.0

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """One of the two."""
        return self.correct if episode.correct else self.wrong


REWARDS.register("outcome", OutcomeReward)
