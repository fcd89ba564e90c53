"""``progress``: each turn earns the increase of a prover's success probability (PAV, arXiv 2410.08146).

Let Q_t be the policy's probability of a correct answer after turn t. The prover is the best of K episodes of the
policy, with success probability Q^mu_t, and the progress of turn t is A_t:

    Q^mu_t = 1 - (1 - Q_t)^K,   A_t = Q^mu_t - Q^mu_{t-1}.

A_t, times alpha (the option ``weight``), is added to the advantage of the tokens of turn t, so that an update follows
the gradient of the outcome plus alpha times the progress. Q_t is estimated as the share of correct episodes among
``rollouts`` further episodes from the end of the turn; Q_0 is the group's pass rate, and after the last turn Q_t is 1
for a correct episode, else 0. With K = 1, the prover would be the policy itself, whose progress only scales the
gradient; if K is too large, every probability is 1. The paper trains with alpha 5 for a model of 2B and 3 for 9B
(appendix E); for search, it uses 0.5 and 0.2. In the paper, the provers are fixed and a model predicts their progress;
here the prover is the best of K episodes of the current policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import CheckedOptions, Count
from rstar2_env.rewards.base import REWARDS, Need, OnTurns, RewardContext


@dataclass(frozen=True)
class Progress(CheckedOptions):
    """Increase per turn of the probability that the best of K continuations succeeds (PAV, arXiv 2410.08146).

    The increase is added to the advantage of the turn's tokens and is not part of the episode's reward. Each turn
    except the last needs ``rollouts`` further episodes.

    Attributes:
        rollouts: Number of further episodes from the end of each turn.
        best_of: K, the number of continuations of which at least one must succeed.
    """

    rollouts: Count = 4
    best_of: Count = 4

    needs: ClassVar[frozenset[Need]] = frozenset({"group", "play", "tokens"})

    async def __call__(self, episode: Episode, ctx: RewardContext) -> OnTurns | None:
        """Return the progress of each turn; ``None`` if there is no turn."""
        assert ctx.play is not None  # guaranteed by ``needs``
        if not episode.steps:
            return None
        branch = ctx.play.branch
        import asyncio  # imported here: listing components does not need it

        played = await asyncio.gather(*(branch(episode, turn.start, self.rollouts) for turn in episode.steps[1:]))
        chances = [_share(ctx.group)]
        for branches in played:
            chances.append(_share(branches, chances[-1]))
        return self.along([*chances, float(episode.correct)])

    def along(self, chances: Sequence[float]) -> OnTurns:
        """Return the progress of each turn.

        Args:
            chances: The policy's success probability Q_t before the first turn and after each turn.
        """
        mu = [1 - (1 - chance) ** self.best_of for chance in chances]
        return OnTurns(after - before for before, after in pairwise(mu))


def _share(episodes: Sequence[Episode], otherwise: float = 0.0) -> float:
    counted = [one.correct for one in episodes if one.available]
    return sum(counted) / len(counted) if counted else otherwise


REWARDS.register("progress", Progress)
