"""Converts sampling parameters to vLLM's request parameters, and reads the most likely tokens from its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout.engine import SamplingParams

_SEED_BITS = 63
"""Number of bits of a seed: vLLM's seeds are signed 64-bit integers."""

MAX_TEMPERATURE, MIN_TEMPERATURE = 2.0, 0.01
"""Range of temperatures that vLLM uses unchanged, in addition to 0 (greedy): vLLM rejects a higher temperature, and
silently raises a lower one."""

MOST_CANDIDATES = 20
"""Maximum number of most likely tokens that a server reports by default (its option ``--max-logprobs``)."""


def check_temperature(temperature: float) -> None:
    """Refuse a temperature that vLLM would change or reject.

    Raises:
        ConfigurationError: The temperature is above 2, or between 0 and 0.01.
    """
    if temperature > MAX_TEMPERATURE or 0 < temperature < MIN_TEMPERATURE:
        raise ConfigurationError(
            f"vLLM samples at temperatures from {MIN_TEMPERATURE} to {MAX_TEMPERATURE}, and greedily at 0; got "
            f"{temperature}."
        )


def best_of(reported: Sequence[Mapping[Any, Any]], params: SamplingParams, *, begun: int = 0) -> list[list[float]]:
    """Return the log-probabilities of the most likely tokens at each new position.

    vLLM also reports the sampled token; it is left out if it is not one of the most likely tokens.

    Args:
        reported: For each new token, the log-probabilities that vLLM or a server reports, by token.
        params: The parameters of the request.
        begun: Number of tokens that the request generated before those in ``reported``.
    """
    if not params.candidates:
        return []
    return [
        sorted((float(getattr(one, "logprob", one)) for one in each.values()), reverse=True)[: params.candidates]
        for each in reported[: max(0, params.measured_tokens - begun)]
    ]


def seed_of(params: SamplingParams, seeds: np.random.SeedSequence) -> int:
    """Return a request's seed, reduced to vLLM's range; if the request has none, draw one from ``seeds``."""
    seed = params.seed
    if seed is None:
        seed = int(seeds.spawn(1)[0].generate_state(1, np.uint64)[0])
    return seed % (1 << _SEED_BITS)


def request_fields(params: SamplingParams, seed: int, room: int) -> dict[str, Any]:
    """Return the parameters of a vLLM request that correspond to sampling parameters.

    Args:
        params: Sampling parameters.
        seed: The seed of the request; see ``seed_of``.
        room: Maximum number of tokens that may follow the prompt.
    """
    return {
        "max_tokens": min(params.max_tokens, room),
        "temperature": params.temperature,
        "top_p": params.top_p,
        "top_k": params.top_k,
        "seed": seed,
        "stop": list(params.stop),
        "stop_token_ids": list(params.stop_ids),
        # Only the requested ids end a turn, regardless of the model's own configuration.
        "ignore_eos": True,
        "include_stop_str_in_output": True,
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
        # vLLM adds the sampled token to this number of most likely tokens.
        "logprobs": params.candidates,
    }
