"""Reward components by name, for the ``RewardShaping`` wrapper and for trainers alike."""

from rstar2_env.rewards.answer_format import AnswerFormat
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
from rstar2_env.rewards.cosine_length import CosineLength
from rstar2_env.rewards.diff_similarity import DiffSimilarity
from rstar2_env.rewards.environment_return import EnvironmentReturn
from rstar2_env.rewards.exploration import Exploration
from rstar2_env.rewards.judges import REWARD_JUDGES, make_reward_judge
from rstar2_env.rewards.laser import Laser
from rstar2_env.rewards.latent_action import LatentAction
from rstar2_env.rewards.letter_choice import LetterChoice
from rstar2_env.rewards.linear_length import LinearLength
from rstar2_env.rewards.metric_threshold import MetricThreshold
from rstar2_env.rewards.model_verifier import ModelVerifierReward
from rstar2_env.rewards.outcome import OutcomeReward
from rstar2_env.rewards.overlong import Overlong
from rstar2_env.rewards.plan_value import PlanValue
from rstar2_env.rewards.process import Process
from rstar2_env.rewards.progress import Progress
from rstar2_env.rewards.reference_probability import ReferenceProbability
from rstar2_env.rewards.router import Router
from rstar2_env.rewards.rubric import Rubric
from rstar2_env.rewards.step_scores import STEP_SCORES
from rstar2_env.rewards.text_metrics import TEXT_METRICS
from rstar2_env.rewards.tool_hierarchy import ToolHierarchy
from rstar2_env.rewards.tool_use import ToolUse
from rstar2_env.rewards.wrong_by_turns import WrongByTurns

__all__ = [
    "REWARDS",
    "REWARD_JUDGES",
    "STEP_SCORES",
    "TEXT_METRICS",
    "AnswerFormat",
    "Component",
    "CosineLength",
    "DiffSimilarity",
    "EnvironmentReturn",
    "Exploration",
    "LanguageModel",
    "Laser",
    "LatentAction",
    "Learns",
    "LetterChoice",
    "LinearLength",
    "MetricThreshold",
    "ModelVerifierReward",
    "OnTurns",
    "OutcomeReward",
    "Overlong",
    "PlanValue",
    "Plays",
    "Process",
    "Progress",
    "ReferenceProbability",
    "Reward",
    "RewardContext",
    "RewardJudge",
    "Router",
    "Rubric",
    "ToolHierarchy",
    "ToolUse",
    "WrongByTurns",
    "make_component",
    "make_reward_judge",
    "needs_of",
]
