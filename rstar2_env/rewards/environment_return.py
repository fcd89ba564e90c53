"""``return``: the environment's own reward."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.episode import Episode
from rstar2_env.rewards.base import REWARDS, RewardContext


@dataclass(frozen=True, slots=True)
class EnvironmentReturn:
    """The environment's return, the sum of the rewards of its steps."""

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """Return the sum of the environment's rewards."""
        return episode.reward


REWARDS.register("return", EnvironmentReturn)
