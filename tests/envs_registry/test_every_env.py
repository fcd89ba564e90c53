"""Every registered id keeps Gymnasium's API and the contract: a new environment brings its conformance test with it."""

import warnings

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

import rstar2_env  # noqa: F401  # registers the ids
from rstar2_env.core.errors import SandboxUnavailableError
from rstar2_env.sandbox import make_sandbox
from rstar2_env.testing import check_text_env

IDS = sorted(name for name, spec in gym.registry.items() if spec.namespace == "rstar2")


@pytest.fixture(scope="module", autouse=True)
def _sandbox():
    try:
        make_sandbox("local").close()
    except SandboxUnavailableError as error:
        pytest.skip(f"no local sandbox on this machine: {error}")


def test_there_are_ids():
    assert "rstar2/MathTool-v0" in IDS


@pytest.mark.parametrize("env_id", IDS)
def test_gymnasiums_check_env_finds_nothing_and_warns_of_nothing(env_id, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(env_id).unwrapped)


@pytest.mark.parametrize("env_id", IDS)
def test_it_keeps_the_contract(env_id):
    check_text_env(env_id)


@pytest.mark.parametrize("env_id", IDS)
def test_it_has_no_time_limit_of_gymnasiums_and_does_not_claim_to_be_nondeterministic(env_id):
    spec = gym.spec(env_id)
    assert spec.max_episode_steps is None
    assert spec.nondeterministic is False


@pytest.mark.parametrize("env_id", IDS)
def test_its_docstring_is_its_specification(env_id):
    text = type(gym.make(env_id).unwrapped).__doc__
    for heading in ("Action space", "Observation space", "Reward", "Episode end", "Information", "Version history"):
        assert f"## {heading}" in text


@pytest.mark.parametrize("env_id", IDS)
def test_its_spec_goes_to_json_and_makes_it_again(env_id):
    spec = gym.envs.registration.EnvSpec.from_json(gym.make(env_id).spec.to_json())
    assert gym.make(spec).reset(seed=1) == gym.make(env_id).reset(seed=1)
