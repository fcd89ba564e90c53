"""vLLM's log-probabilities: supported temperatures, and candidates of each token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout.engine import SamplingParams

MAX_TEMPERATURE, MIN_TEMPERATURE = 2.0, 0.01
"""vLLM refuses higher temperatures, and silently raises lower ones, except 0 (greedy)."""

MOST_CANDIDATES = 20
"""Default of a server's ``--max-logprobs``."""


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
    """Log-probabilities of the most likely tokens at each new token, without the sampled token that vLLM adds.

    Args:
        reported: For each new token, the log-probabilities that vLLM or a server reports, by token.
        params: The parameters of the request.
        begun: Number of earlier tokens of the request.
    """
    if not params.candidates:
        return []
    return [
        sorted((float(getattr(one, "logprob", one)) for one in each.values()), reverse=True)[: params.candidates]
        for each in reported[: max(0, params.measured_tokens - begun)]
    ]
