"""Each wrapper, and all of them together, keep the contract of a wrapper around every registered environment."""

import itertools

import gymnasium as gym
import pytest

import rstar2_env  # noqa: F401  # registers the ids
from rstar2_env.rewards import Component
from rstar2_env.rewards.answer_format import AnswerFormat
from rstar2_env.testing import WRAPPER_CHECKS, check_wrapper
from rstar2_env.wrappers import (
    AddedInstruction,
    FaultInjection,
    ObservationLimit,
    RecordEpisodes,
    RewardShaping,
    SaveState,
    ToolBudget,
    UnaryFeedback,
)
from rstar2_env.wrappers.registry import WRAPPERS

IDS = sorted(name for name, spec in gym.registry.items() if spec.namespace == "rstar2")
SHAPED = {"components": [Component("format", AnswerFormat(), weight=0.1, gate="correct")], "clip": (-1, 2)}
OPTIONS = {
    "fault_injection": {"rate": 0.5, "latency_s": 0.0},
    "instruction": {"text": "First write a plan."},
    "observation_limit": {"limit": 20},
    "reward_shaping": SHAPED,
    "tool_budget": {"calls": 1},
}
"""What a wrapper needs, or what makes it act; the others take their defaults."""
NAMES = [*WRAPPERS.names(), "all"]


def recorded(folder):
    numbers = itertools.count()
    return lambda env: RecordEpisodes(env, folder / f"{next(numbers)}.jsonl.gz")


def all_of_them(folder):
    record = recorded(folder)

    def wrap(env):
        env = ToolBudget(FaultInjection(env, 0.5, latency_s=0.0), 3, per_turn=2)
        return SaveState(
            record(RewardShaping(UnaryFeedback(AddedInstruction(ObservationLimit(env, 200), "Plan."), 2), **SHAPED))
        )

    return wrap


def check(name, folder, **envs):
    # A record is a file, and every instance needs one of its own.
    own = {"record_episodes": recorded, "all": all_of_them}.get(name)
    wrapper = WRAPPERS.get(name) if own is None else own(folder)
    assert check_wrapper(wrapper, **envs, **OPTIONS.get(name, {})) == list(WRAPPER_CHECKS)


@pytest.mark.parametrize("name", NAMES)
def test_it_keeps_the_contract(name, tmp_path):
    check(name, tmp_path)


@pytest.mark.parametrize("env_id", IDS)
def test_all_together_keep_the_contract_around_every_id(env_id, tmp_path):
    check("all", tmp_path, envs=[env_id])


@pytest.mark.proof
@pytest.mark.parametrize("name", WRAPPERS.names())
def test_each_keeps_the_contract_around_every_id(name, tmp_path):
    check(name, tmp_path, envs=IDS)
