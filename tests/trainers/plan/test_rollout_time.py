"""A rollout takes the seconds that reading and computing take, and those that a simulated cluster takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rstar2_env.trainers.plan.architecture import MODELS
from rstar2_env.trainers.plan.assumptions import Assumptions
from rstar2_env.trainers.plan.device import DEVICES, device_of
from rstar2_env.trainers.plan.rollout_time import lengths_of, rollout_seconds

MODEL, DEVICE, ASSUME = MODELS["qwen3-14b"], DEVICES["mi300x"], Assumptions(tool_s=0.0)
ROOMY = 10_000_000


def test_an_episode_alone_reads_the_weights_and_its_cache_for_each_token() -> None:
    tokens, prompt = 1000, ASSUME.prompt_tokens
    bandwidth = 0.6 * 5.3e12
    cached = MODEL.cache_bytes() * sum(range(prompt, prompt + tokens)) / bandwidth
    weights = tokens * (0.002 + 2 * MODEL.matrix_parameters / bandwidth)
    reading = prompt * 2 * MODEL.active_parameters / (0.4 * 1307.4e12)
    alone = rollout_seconds(MODEL, DEVICE, np.array([float(tokens)]), ROOMY, ASSUME)
    assert alone.seconds == pytest.approx(cached + weights + reading, rel=1e-3)
    assert (alone.most_in_flight, alone.generated) == (1, tokens)


@pytest.mark.parametrize(
    ("mean", "budget", "simulated"), [(2000, 8192, 169), (4000, 8192, 338), (6000, 12_288, 689), (8000, 12_288, 1015)]
)
def test_it_takes_as_long_as_on_the_simulated_cluster_of_the_documents(
    mean: int, budget: int, simulated: float
) -> None:
    # docs/scheduler.md: 16,384 episodes on 64 engines with a cache of 488K tokens each.
    lengths = lengths_of(256, mean, budget, 0.7, among=16_384)
    found = rollout_seconds(MODEL, DEVICE, lengths, 488_000, Assumptions())
    assert found.seconds == pytest.approx(simulated, rel=0.15)


def test_lengths_have_the_mean_and_the_budget_that_were_asked_for() -> None:
    lengths = lengths_of(512, 6000, 12_288, 0.7)
    assert lengths.mean() == pytest.approx(6000, rel=1e-3)
    assert lengths.max() <= 12_288
    assert (lengths == lengths_of(512, 6000, 12_288, 0.7)).all()


def test_a_smaller_cache_plays_in_more_waves_and_never_faster() -> None:
    lengths = lengths_of(128, 6000, 12_288, 0.7)
    found = [rollout_seconds(MODEL, DEVICE, lengths, cache, ASSUME) for cache in (2_000_000, 400_000, 100_000)]
    assert [one.waves for one in found] == sorted(one.waves for one in found)
    assert [one.seconds for one in found] == sorted(one.seconds for one in found)
    assert found[-1].most_in_flight < 20


def test_an_episode_that_fits_into_no_cache_with_another_plays_alone() -> None:
    found = rollout_seconds(MODEL, DEVICE, np.array([100.0, 100.0]), 1, ASSUME)
    assert found.most_in_flight == 1


def test_few_rows_read_few_experts_and_many_read_nearly_all() -> None:
    model = MODELS["qwen3-30b-a3b"]
    times = [
        rollout_seconds(model, DEVICE, np.full(rows, 100.0), ROOMY, replace(ASSUME, prompt_tokens=1)).seconds
        for rows in (1, 64)
    ]
    # One token passes through 8 of 128 experts, 64 tokens through 98 % of them.
    assert times[0] - 0.2 == pytest.approx(100 * 2 * model.active_parameters / 3.18e12, rel=0.05)
    assert times[1] - 0.2 == pytest.approx(100 * 2 * 30e9 / 3.18e12, rel=0.1)


def test_the_speed_of_a_cpu_is_not_known() -> None:
    with pytest.raises(ValueError, match="speed of the device CPU is unknown"):
        rollout_seconds(MODEL, device_of("cpu"), np.ones(1), 10, ASSUME)
