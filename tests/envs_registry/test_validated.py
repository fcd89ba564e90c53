"""Every registered id is fit to train on: in CI one of each base class, on all four levels; in proofs all of them."""

import gymnasium as gym
import pytest

import rstar2_env  # registers the ids
from rstar2_env.core.errors import SandboxUnavailableError
from rstar2_env.env.named import EXTRA_OF
from rstar2_env.envs_registry.math_tool import MathToolEnv
from rstar2_env.evaluation.validation.check import FAILED, NOT_APPLICABLE
from rstar2_env.evaluation.validation.exploit_table import stored
from rstar2_env.sandbox import make_sandbox

IDS = sorted(name for name, spec in gym.registry.items() if spec.namespace == "rstar2")
ONE_OF_EACH = ["rstar2/MathTool-v0", "rstar2/Bootcamp-v0", "rstar2/Game24-v0", "rstar2/TicTacToe-v0"]
ONLY_TWO_LEVELS = ["rstar2/Mixture-v0"]
"""It passes on the environments that it mixes."""


def base_of(env_id):
    """The class that an environment's own class is derived from."""
    return gym.envs.registration.load_env_creator(gym.spec(env_id).entry_point).__bases__[0]


@pytest.fixture(scope="module", autouse=True)
def _sandbox():
    try:
        make_sandbox("local").close()
    except SandboxUnavailableError as error:
        pytest.skip(f"no local sandbox on this machine: {error}")


def wrong(report):
    return [(result.check.name, result.said) for result in report.of(FAILED)]


def test_there_is_one_of_each_base_class():
    assert {base_of(env_id) for env_id in [*ONE_OF_EACH, *ONLY_TWO_LEVELS]} | {MathToolEnv} == set(map(base_of, IDS))


@pytest.mark.parametrize("env_id", ONLY_TWO_LEVELS)
def test_it_passes_the_first_two_levels(env_id):
    # The whole contract is in test_every_env.
    assert wrong(rstar2_env.validate(env_id, level=2, episodes=3, contract=False)) == []


@pytest.mark.parametrize("env_id", ONE_OF_EACH)
def test_one_of_each_kind_passes_the_other_two(env_id):
    report = rstar2_env.validate(env_id, level=4, episodes=6, contract=False)
    assert wrong(report) == []
    assert not [result.check.name for result in report.of(NOT_APPLICABLE) if result.check.level > 2]


def test_the_gallery_has_the_exploits_of_every_environment():
    # To measure again: python tools/exploit_table.py
    assert set(IDS) | set(EXTRA_OF) == set(stored())
    assert all(row["oracle"] == 1.0 for row in stored().values())
    assert all(row["earns"] < 0.5 for row in stored().values())


@pytest.mark.proof
@pytest.mark.parametrize("env_id", IDS)
def test_it_passes_all_four_levels(env_id, record_property):
    # Without the contract: test_every_env has the whole of it.
    report = rstar2_env.validate(env_id, level=4, episodes=64, contract=False)
    figures = report.named("adversarial_floor").figures
    record_property("random", figures.get("random"))
    record_property("best exploit", f"{figures.get('best_exploit')} {figures.get('exploit')}")
    record_property("not applicable", len(report.of(NOT_APPLICABLE)))
    assert wrong(report) == []
