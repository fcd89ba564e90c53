"""``process``: bounded scores of steps, so that repeating a good step earns nothing: Clip and Delta (arXiv 2410.15115).

Let r_1 ... r_K be the scores of the K steps. The episode earns the sum of the bounded scores of all steps k:

- ``clip``: min(r_k - eta, 0), so only steps below the threshold count, as a penalty.
- ``delta``: r_k - r_{k+1}, and r_K for the last step, so the sum is r_1 for any number of steps.
- ``both``: the scores are clipped first, and then subtracted as in ``delta``.

A plain sum would grow with every step, so a policy would learn to repeat a step with a high score. The steps are the
policy's turns, and eta is a threshold. The paper pays each step separately, as ``credit="turns"`` does: the bounded
scores from a turn to the last turn are summed and added to the turn's advantage; for ``delta`` and ``both``, this sum
is the turn's own (clipped) score. With ``credit="episode"``, the sum over all turns is added to the reward for the
answer.
"""

# This module is longer than most parts because it has two forms of credit.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions
from rstar2_env.core.options.parts import read_part
from rstar2_env.rewards.base import REWARDS, OnTurns, RewardContext
from rstar2_env.rewards.step_scores import STEP_SCORES, StepScores


@dataclass(frozen=True)
class Process(CheckedOptions):
    r"""Scores of the turns, bounded by clipping or by differences: PRM Clip and Delta (arXiv 2410.15115).

    Attributes:
        of: Scores each turn: ``"statuses"`` (the share of calls without error), ``"turn_rewards"`` (the environment's
            rewards), or a function of the episode, such as a process reward model: ``./mine.py:scores``.
        bound: ``"clip"`` replaces a score $r$ with $\min(r - \text{eta}, 0)$; ``"delta"`` subtracts the score of the
            next turn, if there is one; ``"both"`` clips and then subtracts.
        eta: Threshold of the clip: a higher score counts as 0.
        credit: ``"episode"`` adds the sum of all bounded scores to the episode's reward; ``"turns"`` adds the sum
            of the bounded scores of a turn and all later ones to the advantage of the turn's tokens.
    """

    of: Any = "statuses"
    bound: Literal["clip", "delta", "both"] = "delta"
    eta: float = 0.8
    credit: Literal["episode", "turns"] = "episode"
    _scores: StepScores = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Look up the function that scores the turns.

        Raises:
            ConfigurationError: An option is not valid.
            UnknownNameError: The scorer does not exist.
        """
        super().__post_init__()
        part = read_part(self.of, STEP_SCORES.kind)
        object.__setattr__(self, "_scores", part.made_by or STEP_SCORES.get(part.name))

    def __call__(self, episode: Episode, ctx: RewardContext) -> float | OnTurns:
        """Return the sum of the turns' bounded scores.

        With ``credit="turns"``, return one sum for each turn: over this turn and all later turns.

        Raises:
            ConfigurationError: The number of scores differs from the number of turns.
        """
        scores = list(self._scores(episode))
        if len(scores) != len(episode.steps):
            raise ConfigurationError(
                f"The reward component {self.of!r} returned {len(scores)} scores for an episode with "
                f"{len(episode.steps)} turns; expected one score per turn."
            )
        bounded = self.bounded(scores)
        if self.credit == "turns":
            return OnTurns(sum(bounded[turn:]) for turn in range(len(bounded)))
        return sum(bounded)

    def bounded(self, scores: Sequence[float]) -> list[float]:
        """Return the scores of the turns with the option ``bound`` applied."""
        if self.bound != "delta":
            scores = [min(score - self.eta, 0.0) for score in scores]
        if self.bound == "clip":
            return list(scores)
        return [score - after for score, after in zip(scores, [*scores[1:], 0.0], strict=True)]


REWARDS.register("process", Process)
