"""Reward components: their interface, their registries, and ``make_component``, for wrappers, evaluation and training.

Each component is a module of this package, found by its name in ``REWARDS``.
"""

from rstar2_env.rewards.base import (
    REWARDS,
    LanguageModel,
    Learns,
    OnTurns,
    Plays,
    Reward,
    RewardContext,
    RewardJudge,
    needs_of,
)
from rstar2_env.rewards.component import Component, make_component
from rstar2_env.rewards.judges import REWARD_JUDGES, make_reward_judge
from rstar2_env.rewards.step_scores import STEP_SCORES
from rstar2_env.rewards.text_metrics import TEXT_METRICS
from rstar2_env.rewards.tool_use import ToolUse

__all__ = [
    "REWARDS",
    "REWARD_JUDGES",
    "STEP_SCORES",
    "TEXT_METRICS",
    "Component",
    "LanguageModel",
    "Learns",
    "OnTurns",
    "Plays",
    "Reward",
    "RewardContext",
    "RewardJudge",
    "ToolUse",
    "make_component",
    "make_reward_judge",
    "needs_of",
]
