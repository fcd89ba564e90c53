"""``answer_format``: 1 if the policy marked exactly one answer, else 0."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.episode import Episode
from rstar2_env.rewards.base import REWARDS, RewardContext


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """1 if the policy marked exactly one answer in the episode, else 0."""

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """Return 1 or 0."""
        return float(episode.answer_tags == 1)


REWARDS.register("answer_format", AnswerFormat)
