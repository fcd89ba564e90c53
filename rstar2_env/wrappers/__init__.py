"""Wrappers for text environments; the wrappers for faults, budgets and limits add middleware to the tool chain."""

from rstar2_env.wrappers.fault_injection import Fault, FaultInjection
from rstar2_env.wrappers.instruction import AddedInstruction
from rstar2_env.wrappers.make import make_env
from rstar2_env.wrappers.observation_limit import ObservationLimit
from rstar2_env.wrappers.record_episodes import RecordEpisodes, read_episodes
from rstar2_env.wrappers.registry import WRAPPERS, wrap
from rstar2_env.wrappers.reward_shaping import RewardShaping
from rstar2_env.wrappers.save_state import RestoreError, SavedState, SaveState
from rstar2_env.wrappers.tool_budget import ToolBudget
from rstar2_env.wrappers.unary_feedback import UnaryFeedback

__all__ = [
    "WRAPPERS",
    "AddedInstruction",
    "Fault",
    "FaultInjection",
    "ObservationLimit",
    "RecordEpisodes",
    "RestoreError",
    "RewardShaping",
    "SaveState",
    "SavedState",
    "ToolBudget",
    "UnaryFeedback",
    "make_env",
    "read_episodes",
    "wrap",
]
