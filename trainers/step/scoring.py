"""Score episodes in a trainer: ``rstar2_env.rewards.scoring`` with the run's judge and problems."""

from __future__ import annotations

from collections.abc import Sequence

from rstar2_env.core.episode import Episode
from rstar2_env.problems import ProblemSource
from rstar2_env.rewards.base import Need, RewardJudge
from rstar2_env.rewards.component import Component
from rstar2_env.rewards.needs import OWN_JUDGE
from rstar2_env.rewards.scoring import TURN_SCORES, RewardScorer

from ..advantages.base import Advantages
from ..advantages.tokens import on_tokens, on_turns


def scorer_of(
    components: Sequence[Component], judge: RewardJudge | None, problems: ProblemSource | None
) -> RewardScorer:
    """Return the scorer that computes a trainer's reward.

    Args:
        components: The components.
        judge: The judge of the run.
        problems: The environment's source of problems.

    Raises:
        ConfigurationError: The reward cannot be computed; see ``RewardScorer``.
    """
    lacking: dict[Need, str] = {}
    if judge is None:
        lacking["judge"] = f"and this trainer has none: set rollout.judge, or {OWN_JUDGE}"
    if problems is None:
        lacking["problem"] = (
            "and this environment has no source of problems: choose an environment that has one, such as "
            "rstar2/MathTool-v0."
        )
    return RewardScorer(components, lacking=lacking, judge=judge, problem=None if problems is None else problems.get)


def paid_by_turn(groups: Sequence[Sequence[Episode]], values: Advantages) -> Advantages:
    """Add the score of each turn to the advantages of the turn's tokens.

    Args:
        groups: The episodes, by group.
        values: Their advantages; returned unchanged if no component scores turns.
    """
    return [
        [
            on_tokens(value, episode) + on_turns(episode.measured[TURN_SCORES], episode)
            if TURN_SCORES in episode.measured
            else value
            for episode, value in zip(group, own, strict=True)
        ]
        for group, own in zip(groups, values, strict=True)
    ]
