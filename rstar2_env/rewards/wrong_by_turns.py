"""``wrong_by_turns``: a penalty for a wrong answer that shrinks with the number of turns (GRPO-TCR, arXiv 2510.11701).

A wrong answer earns min(-0.6, -1 + 0.1 (turns - 2) / 2), where ``turns`` counts the turns of the policy and of the
environment; a correct answer earns 0. The paper gives 1 for a correct answer: add the component ``outcome``.
"""

from __future__ import annotations

from dataclasses import dataclass

from rstar2_env.core.episode import Episode
from rstar2_env.rewards.base import REWARDS, RewardContext


@dataclass(frozen=True, slots=True)
class WrongByTurns:
    r"""A penalty for a wrong answer, smaller with more turns; 0 for a correct answer (GRPO-TCR, arXiv 2510.11701).

    The penalty is $\min(-0.6, -1 + 0.1 \frac{\text{turns} - 2}{2})$, where turns counts the turns of the policy and of
    the environment: -1 for 2 turns, -0.8 for 6, -0.6 for 10 or more.
    """

    def __call__(self, episode: Episode, ctx: RewardContext) -> float:
        """Return a number from -1 to -0.6 for a wrong answer, and 0 for a correct answer."""
        if episode.correct:
            return 0.0
        turns = max(2, 2 * episode.turns)
        return min(-0.6, -1 + 0.1 * (turns - 2) / 2)


REWARDS.register("wrong_by_turns", WrongByTurns)
