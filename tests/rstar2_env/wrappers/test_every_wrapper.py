"""Each wrapper, and all of them together, keep the contract around every registered environment."""

import itertools

import gymnasium as gym
import pytest

import rstar2_env  # noqa: F401  # registers the ids
from rstar2_env.testing import StubSandbox, check_text_env
from rstar2_env.wrappers import (
    AnswerFormat,
    Component,
    FaultInjection,
    ObservationLimit,
    RecordEpisodes,
    RewardShaping,
    SaveState,
    ToolBudget,
    UnaryFeedback,
)

IDS = sorted(name for name, spec in gym.registry.items() if spec.namespace == "rstar2")
NOT_THE_WRAPPERS_BUSINESS = ("gymnasium_check", "linear_time", "global_random_state")


def base(env_id):
    # Programs are the sandbox's business; where an environment takes a sandbox, a stub spares them.
    try:
        return gym.make(env_id, sandbox=StubSandbox("42 and more"))
    except TypeError:
        return gym.make(env_id)


def shaped(env):
    return RewardShaping(env, [Component("format", AnswerFormat(), weight=0.1, gate="correct")], clip=(-1, 2))


def recorded(folder):
    numbers = itertools.count()
    return lambda env: RecordEpisodes(env, folder / f"{next(numbers)}.jsonl.gz")


def all_of_them(folder):
    record = recorded(folder)

    def wrap(env):
        env = ToolBudget(FaultInjection(env, 0.5, latency_s=0.0), 3, per_turn=2)
        return SaveState(record(shaped(UnaryFeedback(ObservationLimit(env, 200), 2))))

    return wrap


WRAPPERS = {
    "FaultInjection": lambda folder: lambda env: FaultInjection(env, 0.5, latency_s=0.0),
    "ToolBudget": lambda folder: lambda env: ToolBudget(env, 1),
    "ObservationLimit": lambda folder: lambda env: ObservationLimit(env, 20),
    "RecordEpisodes": recorded,
    "UnaryFeedback": lambda folder: UnaryFeedback,
    "RewardShaping": lambda folder: shaped,
    "SaveState": lambda folder: SaveState,
    "all": all_of_them,
}


def check(name, env_id, folder):
    wrap = WRAPPERS[name](folder)
    check_text_env(lambda: wrap(base(env_id)), skip=NOT_THE_WRAPPERS_BUSINESS, seeds=(0,))


@pytest.mark.parametrize("name", WRAPPERS)
def test_it_keeps_the_contract(name, tmp_path):
    check(name, "rstar2/MathTool-v0", tmp_path)


@pytest.mark.parametrize("env_id", IDS)
def test_all_together_keep_the_contract_around_every_id(env_id, tmp_path):
    check("all", env_id, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("name", WRAPPERS)
def test_each_keeps_the_contract_around_every_id(name, env_id, tmp_path):
    check(name, env_id, tmp_path)


@pytest.mark.parametrize("name", ["FaultInjection", "ToolBudget", "ObservationLimit", "UnaryFeedback", "SaveState"])
def test_its_spec_makes_it_again(name, tmp_path):
    env = WRAPPERS[name](tmp_path)(gym.make("rstar2/MathTool-v0"))
    again = gym.make(env.spec)
    assert type(again) is type(env)
    assert again.reset(seed=3) == env.reset(seed=3)
