"""The parameters of a request to vLLM, with the same names in this process and over HTTP."""

from __future__ import annotations

from typing import Any

import numpy as np

from rstar2_env.rollout.engine import SamplingParams

_SEED_BITS = 63
"""vLLM seeds are signed 64-bit integers."""


def seed_of(params: SamplingParams, seeds: np.random.SeedSequence) -> int:
    """Return the seed of a request in vLLM's range; drawn from ``seeds`` if the request has no seed."""
    seed = params.seed
    if seed is None:
        seed = int(seeds.spawn(1)[0].generate_state(1, np.uint64)[0])
    return seed % (1 << _SEED_BITS)


def request_fields(params: SamplingParams, seed: int, room: int) -> dict[str, Any]:
    """Return vLLM's parameters of a request.

    Args:
        params: How to sample.
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
