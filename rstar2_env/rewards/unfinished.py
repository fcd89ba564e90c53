"""``unfinished``: a penalty for episodes that did not end by themselves (AgentRL, arXiv 2510.04206, appendix E)."""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.rewards.base import REWARDS, RewardContext

_FINISHED = frozenset({"answered", "terminated"})


@dataclass(frozen=True)
class UnfinishedPenalty(CheckedOptions):
    """``-penalty`` for an episode that did not end by itself, and 0 for any other (AgentRL, arXiv 2510.04206).

    An episode ends by itself if the policy answers or the environment terminates it. Any other episode was ended by a
    limit of turns, tokens or time, or its last turn has neither a call nor an answer. In the paper, such an episode
    earns -0.2, a wrong answer 0, and a right answer 1.

    Attributes:
        penalty: Amount that is subtracted.
    """

    penalty: float = option(0.2, least=0)

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """Return ``-penalty`` or 0."""
        return 0.0 if episode.end in _FINISHED else -self.penalty


REWARDS.register("unfinished", UnfinishedPenalty)
