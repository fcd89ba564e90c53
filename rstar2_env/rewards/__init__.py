"""Reward components by name, for the ``RewardShaping`` wrapper and for trainers alike."""

from rstar2_env.rewards.answer_format import AnswerFormat
from rstar2_env.rewards.base import REWARDS, Judge, LanguageModel, Reward, RewardContext, needs_of
from rstar2_env.rewards.component import Component, make_component
from rstar2_env.rewards.cosine_length import CosineLength
from rstar2_env.rewards.environment_return import EnvironmentReturn
from rstar2_env.rewards.linear_length import LinearLength
from rstar2_env.rewards.overlong import Overlong
from rstar2_env.rewards.tool_use import ToolUse
from rstar2_env.rewards.wrong_by_turns import WrongByTurns

__all__ = [
    "REWARDS",
    "AnswerFormat",
    "Component",
    "CosineLength",
    "EnvironmentReturn",
    "Judge",
    "LanguageModel",
    "LinearLength",
    "Overlong",
    "Reward",
    "RewardContext",
    "ToolUse",
    "WrongByTurns",
    "make_component",
    "needs_of",
]
