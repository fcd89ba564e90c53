"""``rollout_seconds``: the simulated time in which one engine plays its episodes of a step.

The lengths of the episodes are quantiles of a log-normal distribution, cut at the budget. Episodes start in order while
their tokens fit into the cache, and end at their lengths. Between two such events, each decoding step adds one token to
every running episode. Covered: waves of episodes that do not all fit into the cache, and the long tail with few running
episodes. Not covered: differences between engines, pre-emption (an episode starts only if its whole length fits),
prompts that a group shares; benchmarks/scheduler_sim.py simulates the engines and the scheduler of a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from .architecture import Architecture
from .assumptions import Assumptions
from .device import Device


@dataclass(frozen=True, slots=True)
class RolloutTime:
    """The time of a simulated rollout, in which one engine plays its share of a step's episodes.

    Attributes:
        seconds: Seconds from the start of the first episode to the end of the last.
        most_in_flight: Maximum number of episodes that are decoded concurrently.
        waves: Number of episodes divided by ``most_in_flight``.
        generated: Number of tokens of the policy and the environment after the prompts.
    """

    seconds: float
    most_in_flight: int
    waves: float
    generated: int


def lengths_of(count: int, mean: float, most: int, spread: float, *, among: int = 0) -> NDArray[np.float64]:
    """Return the lengths of an engine's episodes in tokens, in a fixed random order.

    Args:
        count: Number of episodes.
        mean: Mean length after longer episodes are cut to ``most``.
        most: Maximum length.
        spread: Standard deviation of the logarithm of the lengths before they are cut.
        among: Number of episodes on all engines; 0 if this is the only engine. The longest of them is assigned to this
            engine, since the step waits for the longest episode.
    """
    # Quantiles at equal distances instead of random draws, so that a plan does not depend on chance.
    places = (np.arange(count) + 0.5) / count
    places[-1] = max(places[-1], 1 - 0.5 / max(1, among))
    shape = np.exp(spread * np.array([NormalDist().inv_cdf(float(place)) for place in places]))
    low, high = 0.0, 100.0 * most
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(middle * shape, most).mean() < mean else (low, middle)
    found = np.maximum(1.0, np.minimum(low * shape, most))
    return np.random.default_rng(0).permutation(found)


def rollout_seconds(
    model: Architecture,
    device: Device,
    lengths: NDArray[np.float64],
    cache_tokens: int,
    assume: Assumptions,
    *,
    tensor_parallel: int = 1,
    max_rows: int = 256,
) -> RolloutTime:
    """Return the time of a rollout on one engine.

    Args:
        model: Sizes of the model.
        device: One of the engine's devices.
        lengths: Tokens of each episode after its prompt.
        cache_tokens: Tokens that fit into the engine's cache.
        assume: Assumptions about hardware, software and episodes.
        tensor_parallel: Number of devices of the engine.
        max_rows: Maximum number of concurrent episodes, even if the cache holds more.

    Raises:
        ValueError: The device's speed is unknown.
    """
    if device.bandwidth is None or device.operations is None:
        raise ValueError(
            f"The time of a rollout cannot be computed, because the speed of the device {device.name} is unknown."
        )
    bandwidth = device.bandwidth * assume.bandwidth_share * tensor_parallel
    operations = device.operations * assume.prefill_share * tensor_parallel
    per_token = 2 * model.active_parameters / operations
    per_cached = model.cache_bytes() / bandwidth
    prompt = assume.prompt_tokens
    queue, live = list(lengths[::-1]), np.empty((0, 2))  # for each row: remaining tokens, tokens in the cache
    clock, most, reserved = 0.0, 0, 0.0
    while queue or len(live):
        fresh: list[tuple[float, float]] = []
        while queue and len(live) + len(fresh) < max_rows:
            if len(live) + len(fresh) and reserved + prompt + queue[-1] > cache_tokens:
                break
            length = queue.pop()
            fresh.append((length, float(prompt)))
            reserved += prompt + length
        if fresh:
            clock += len(fresh) * prompt * per_token
            live = np.vstack([live, np.array(fresh)])
        rows = len(live)
        most = max(most, rows)
        steps = live[:, 0].min()
        fixed = assume.decode_step_s + max(_weights_read(model, rows) / bandwidth, rows * per_token)
        clock += steps * fixed + per_cached * steps * (live[:, 1].sum() + rows * steps / 2)
        live += np.array([-steps, steps])
        ended = live[:, 0] < 0.5
        reserved -= float(live[ended].sum())
        live = live[~ended]
    return RolloutTime(float(clock) + assume.tool_s, most, len(lengths) / max(1, most), round(lengths.sum()))


def _weights_read(model: Architecture, rows: int) -> float:
    """Return the bytes of bfloat16 weights that a decoding step of ``rows`` episodes reads, without unused experts."""
    if not model.experts:
        return 2.0 * model.matrix_parameters
    touched = 1 - (1 - model.active_experts / model.experts) ** rows
    experts = model.layers * model.experts * 3 * model.hidden * model.intermediate
    return 2.0 * (model.matrix_parameters - experts * (1 - touched))
