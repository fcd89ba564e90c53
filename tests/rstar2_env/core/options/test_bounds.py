"""Claims about the upper bounds of counts: which options have one, and what the message says."""

from __future__ import annotations

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.bounds import check_count, upper_bound
from rstar2_env.core.options.declare import checked, option


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("rollout.max_episode_tokens", 1 << 24),
        ("tokens_per_device", 1 << 24),
        ("workers", 1 << 14),
        ("max_in_flight", 1 << 14),
        ("group_size", 1 << 20),
        ("problems_per_step", 1 << 20),
        ("lora-rank", 1 << 20),
        ("sft_steps", 10**9),
        ("episodes", 10**9),
    ],
)
def test_the_quantity_in_the_name_decides(name: str, most: int) -> None:
    found = upper_bound(name)
    assert found is not None
    assert found[0] == most
    check_count(name, most)
    with pytest.raises(
        ConfigurationError, match=rf"^{name} must be at most {most:,}, not {most + 1:,}: .*smaller number"
    ):
        check_count(name, most + 1)


@pytest.mark.parametrize("name", ["seed", "max_total_tokens", "memory_mb", "step.seed", "cache_tokens", "temperature"])
def test_what_is_no_count_that_memory_grows_with_has_no_bound(name: str) -> None:
    assert upper_bound(name) is None
    check_count(name, 10**30)


def test_only_whole_numbers_are_bounded_and_a_list_by_its_members() -> None:
    check_count("tokens", True)
    check_count("tokens", 1e30)
    check_count("tokens", "many")
    with pytest.raises(ConfigurationError, match=r"--tokens must be .*, not a number of 31 digits"):
        check_count("tokens", [1, 10**30], written="--tokens")


def test_every_declared_option_is_bounded_unless_its_own_rule_is() -> None:
    @checked
    def play(workers: int = 1, *, samples: int = option(1, most=10**12)) -> int:
        return workers

    assert play(4, samples=5) == 4
    with pytest.raises(ConfigurationError, match="workers must be at most"):
        play(10**6)
