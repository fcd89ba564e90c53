"""Which sharding a run has, and which engines work with it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.backends.trl.sharding.choice import check_engine, chosen_sharding, sharding_of

NAMES = ("ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED", "FSDP_VERSION", "FSDP_OFFLOAD_PARAMS")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the variables with which ``accelerate launch`` starts a process."""
    for name in NAMES:
        monkeypatch.setenv(name, "false")
        monkeypatch.delenv(name)
    return lambda **variables: [monkeypatch.setenv(name, value) for name, value in variables.items()]


def test_without_an_option_and_without_a_configuration_nothing_is_sharded(launched: Any) -> None:
    assert chosen_sharding(None) == "none"
    assert chosen_sharding("fsdp2") == "fsdp2"


def test_a_configuration_of_accelerate_is_followed_and_its_own_fsdp_switched_off(launched: Any) -> None:
    from transformers.integrations.fsdp import is_fsdp_enabled

    launched(ACCELERATE_USE_FSDP="true", FSDP_VERSION="2")
    assert chosen_sharding(None) == "fsdp2"
    assert not is_fsdp_enabled()
    assert chosen_sharding(None) == "none", "it is asked once, before anything is loaded"


@pytest.mark.parametrize(
    ("variables", "wanted", "says"),
    [
        ({"ACCELERATE_USE_FSDP": "true"}, None, "fsdp_version: 2"),
        ({"ACCELERATE_USE_FSDP": "1", "FSDP_VERSION": "2", "FSDP_OFFLOAD_PARAMS": "true"}, None, "host memory"),
        ({"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"}, "zero3", "requests fsdp2"),
        ({"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"}, "none", "requests fsdp2"),
    ],
)
def test_a_configuration_that_cannot_be_followed_is_refused(
    variables: dict[str, str], wanted: str | None, says: str, launched: Any
) -> None:
    launched(**variables)
    with pytest.raises(ConfigurationError, match=says):
        chosen_sharding(wanted)


@pytest.mark.parametrize(
    ("processes", "stage", "expected"), [(8, 0, "none"), (8, 2, "zero2"), (8, 3, "zero3"), (1, 3, "none")]
)
def test_it_is_known_how_deepspeed_shards(processes: int, stage: int, expected: str) -> None:
    state = SimpleNamespace(num_processes=processes, deepspeed_plugin=SimpleNamespace(zero_stage=stage))
    assert sharding_of(state) == expected
    assert sharding_of(SimpleNamespace(num_processes=processes)) == "none"


def test_an_engine_that_would_wait_forever_is_refused_with_what_to_use() -> None:
    with pytest.raises(ConfigurationError, match=r'engine="vllm-server", or sharding="fsdp2" or "zero2"'):
        check_engine("transformers", "zero3", shares_weights=True)


@pytest.mark.parametrize(
    ("sharding", "shares"), [("fsdp2", True), ("fsdp2", False), ("zero2", True), ("zero3", False), ("none", True)]
)
def test_every_other_engine_is_allowed(sharding: Any, shares: bool) -> None:
    check_engine("any", sharding, shares_weights=shares)
