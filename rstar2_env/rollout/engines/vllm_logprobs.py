"""What vLLM's log-probabilities are, in this process and of a server: at which temperatures, and of which tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout.engine import SamplingParams

MAX_TEMPERATURE, MIN_TEMPERATURE = 2.0, 0.01
"""vLLM refuses higher temperatures, and silently raises lower ones except 0 (greedy)."""

MOST_CANDIDATES = 20
"""What a server's ``--max-logprobs`` is where nobody sets it."""


def check_temperature(temperature: float) -> None:
    """Refuse a temperature that vLLM would change or reject.

    Raises:
        ConfigurationError: It is above 2, or between 0 and 0.01.
    """
    if temperature > MAX_TEMPERATURE or 0 < temperature < MIN_TEMPERATURE:
        raise ConfigurationError(
            f"vLLM samples at temperatures from {MIN_TEMPERATURE} to {MAX_TEMPERATURE}, and greedily at 0; got "
            f"{temperature}."
        )


def best_of(told: Sequence[Mapping[Any, Any]], params: SamplingParams, *, begun: int = 0) -> list[list[float]]:
    """Log-probabilities of the most likely tokens, as a request wants them; vLLM adds that of the one it drew.

    Args:
        told: What vLLM or a server tells of each new token: log-probabilities by token.
        params: What the request wants.
        begun: Tokens that it had before.
    """
    if not params.candidates:
        return []
    return [
        sorted((float(getattr(one, "logprob", one)) for one in each.values()), reverse=True)[: params.candidates]
        for each in told[: max(0, params.measured_tokens - begun)]
    ]
