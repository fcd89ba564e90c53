"""Advantages: golden numbers, what must not change them, and sums over processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError, UnknownNameError
from rstar2_env.core.options.parts import make_part
from rstar2_env.testing.training.processes import in_processes
from rstar2_env.trainers.advantages.base import ADVANTAGES
from rstar2_env.trainers.ranks import ONE, Ranks

RELATIVE = ["group_mean", "group_mean_batch_std", "group_norm", "rloo"]
MIXED, SAME = np.array([1.0, 0.0, 0.0, 1.0]), np.zeros(4)
SIGNS = np.array([1.0, -1.0, -1.0, 1.0])
EPS = 1e-4

finite = st.floats(-100, 100, allow_subnormal=False).map(lambda x: round(x, 3))
groups = st.lists(st.lists(finite, min_size=1, max_size=8).map(lambda r: np.array(r, dtype=np.float64)), max_size=4)


def episodes(rewards: Sequence[float]) -> list[Episode]:
    return [Episode(reward=float(reward), end="answered") for reward in rewards]


def compute(name: Any, *rewards: NDArray[np.float64], ranks: Ranks = ONE) -> list[NDArray[np.float64]]:
    values = make_part(ADVANTAGES, name)([episodes(group) for group in rewards], ranks)
    return [np.array(group, dtype=np.float64) for group in values]


def test_the_estimators_come_by_name() -> None:
    assert {*RELATIVE, "reinforce"} <= set(ADVANTAGES.names())
    with pytest.raises(UnknownNameError, match="group_norm"):
        ADVANTAGES.get("groupnorm")
    with pytest.raises(ConfigurationError, match="eps"):
        make_part(ADVANTAGES, "group_norm:eps=-1")


@pytest.mark.parametrize(
    ("name", "value"), [("group_norm", 0.8660), ("group_mean", 0.5), ("rloo", 0.6667), ("group_mean_batch_std", 0.8660)]
)
def test_golden_numbers_of_one_group(name: str, value: float) -> None:
    assert compute(name, MIXED)[0] == pytest.approx(value * SIGNS, abs=3e-4)


@pytest.mark.parametrize(
    ("name", "value"), [("group_norm", 0.8660), ("group_mean", 0.5), ("rloo", 0.6667), ("group_mean_batch_std", 1.0801)]
)
def test_golden_numbers_of_a_batch_with_an_all_equal_group(name: str, value: float) -> None:
    first, second = compute(name, MIXED, SAME)
    assert first == pytest.approx(value * SIGNS, abs=4e-4)
    assert (second == 0.0).all()


def test_the_deviation_is_the_unbiased_one_with_the_epsilon_added() -> None:
    rewards = np.array([0.0, 0.0, 3.0])
    assert compute("group_norm", rewards)[0] == pytest.approx([-1 / (3**0.5 + EPS)] * 2 + [2 / (3**0.5 + EPS)])


@pytest.mark.parametrize("name", RELATIVE)
@given(reward=st.floats(-1e6, 1e6, allow_subnormal=False), size=st.integers(1, 33))
def test_a_group_whose_rewards_are_all_equal_gets_exactly_zero(name: str, reward: float, size: int) -> None:
    assert (compute(name, np.full(size, reward), MIXED)[0] == 0.0).all()


@pytest.mark.parametrize("name", RELATIVE)
@given(batch=groups)
def test_advantages_have_the_shapes_of_the_rewards_and_sum_to_zero_in_each_group(
    name: str, batch: list[NDArray[np.float64]]
) -> None:
    values = compute(name, *batch)
    assert [v.shape for v in values] == [r.shape for r in batch]
    for value in values:
        assert np.isfinite(value).all()
        assert value.sum() == pytest.approx(0.0, abs=1e-6 * max(1.0, float(np.abs(value).max())))


@pytest.mark.parametrize("name", ["group_norm", "group_mean_batch_std"])
@given(
    rewards=st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=16),
    scale=st.floats(0.5, 8.0),
    shift=st.floats(-4.0, 4.0),
)
def test_normalized_advantages_do_not_change_with_a_positive_scale_or_a_shift(
    name: str, rewards: list[float], scale: float, shift: float
) -> None:
    raw = np.array(rewards)
    assert compute(name, scale * raw + shift)[0] == pytest.approx(compute(name, raw)[0], abs=0.02)


@pytest.mark.parametrize("name", RELATIVE)
@given(batch=groups.filter(bool), seed=st.integers(0, 99))
def test_the_order_of_the_episodes_does_not_matter(name: str, batch: list[NDArray[np.float64]], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(batch[0]))
    shuffled = compute(name, batch[0][order], *batch[1:])[0]
    assert shuffled == pytest.approx(compute(name, *batch)[0][order], abs=1e-6)


@given(batch=groups, other=groups)
def test_all_but_the_batch_estimator_look_at_one_group_alone(
    batch: list[NDArray[np.float64]], other: list[NDArray[np.float64]]
) -> None:
    for name in ("group_norm", "group_mean", "rloo"):
        for alone, together in zip(compute(name, *batch), compute(name, *batch, *other), strict=False):
            assert (alone == together).all()


@pytest.mark.parametrize("name", RELATIVE)
def test_one_episode_and_no_episode_have_nothing_to_learn(name: str) -> None:
    assert compute(name) == []
    alone, none = compute(name, np.array([1.0]), np.array([]))
    assert alone.tolist() == [0.0]
    assert none.shape == (0,)
    assert ADVANTAGES.get(name).least == 2


@pytest.mark.parametrize("name", [*RELATIVE, "reinforce"])
def test_rewards_that_differ_by_rounding_alone_are_equal(name: str) -> None:
    noisy = np.array([0.1 + 0.2, 0.3, 0.3, 0.1 + 0.2])
    assert len(set(noisy)) == 2
    others = [] if name == "reinforce" else [MIXED]
    assert (compute(name, noisy, *others)[0] == 0.0).all()
    assert (compute(name, np.full(3, 0.1), *others)[0] == 0.0).all()


def test_a_batch_deviation_is_that_of_the_raw_rewards_or_of_the_centred_ones() -> None:
    batch = (MIXED, SAME)
    raw, centred = (compute(f"group_mean_batch_std:of={of}", *batch)[0] for of in ("raw", "centred"))
    assert raw == pytest.approx(SIGNS * 0.5 / (0.46291 + EPS), abs=1e-4)
    assert centred == pytest.approx(SIGNS * 0.5 / (0.37796 + EPS), abs=1e-4)


@pytest.mark.parametrize("written", ["group_mean_batch_std", "group_mean_batch_std:of=centred", "reinforce"])
@given(batch=groups, at=st.integers(0, 4))
def test_two_processes_compute_what_one_does(written: str, batch: list[NDArray[np.float64]], at: int) -> None:
    shares = batch[:at], batch[at:]
    apart = in_processes(2, lambda ranks: compute(written, *shares[ranks.rank], ranks=ranks))
    for one, other in zip(compute(written, *batch), [*apart[0], *apart[1]], strict=True):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-9)


class TestReinforce:
    def test_the_baseline_is_the_mean_of_the_batch_or_nothing(self) -> None:
        batch = np.array([1.0, 0.0]), np.array([1.0, 1.0]), np.array([2.0])
        assert np.concatenate(compute("reinforce", *batch)).tolist() == [0.0, -1.0, 0.0, 0.0, 1.0]
        assert np.concatenate(compute("reinforce:baseline=none", *batch)).tolist() == [1.0, 0.0, 1.0, 1.0, 2.0]

    def test_an_episode_that_is_alone_in_its_group_trains(self) -> None:
        assert ADVANTAGES.get("reinforce").least == 1
        alone, others = compute("reinforce", np.array([1.0]), np.array([0.0, 0.0]))
        assert alone[0] == pytest.approx(2 / 3)
        assert others == pytest.approx(np.array([-1 / 3, -1 / 3]))


def test_leave_one_out_of_two_is_the_difference_of_both() -> None:
    assert list(compute("rloo", np.array([1.0, 0.0]))[0]) == [1.0, -1.0]
    assert list(compute("rloo", np.array([1.0]))[0]) == [0.0]


def test_without_an_epsilon_equal_rewards_give_zeros() -> None:
    assert list(compute("group_norm:eps=0", np.array([2.0, 2.0]))[0]) == [0.0, 0.0]
    assert list(compute("group_mean_batch_std:eps=0", np.array([2.0, 2.0]))[0]) == [0.0, 0.0]
    assert list(compute("group_mean_batch_std:eps=0")) == []
