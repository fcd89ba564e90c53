"""Limits on a process's requests to an endpoint: requests and tokens per minute, total tokens, total cost.

Covered: limits that all threads of a process share. Not covered: other processes' requests to the same endpoint.
"""

from __future__ import annotations

import random
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from rstar2_env.core.errors import ConfigurationError, EndpointBudgetError, ServiceError
from rstar2_env.core.net.chat.reply import Usage
from rstar2_env.core.options.declare import CheckedOptions, option

_MILLION = 1_000_000


@dataclass(frozen=True)
class ChatLimits(CheckedOptions):
    """Limits on all requests of a process to one endpoint.

    Attributes:
        in_flight: Maximum number of concurrent requests; without a limit (``None``), one for each worker.
        requests_per_minute: Maximum number of requests per minute; they are sent at even intervals.
        tokens_per_minute: Maximum number of tokens read and written per minute, on average.
        max_tokens: Budget of tokens read and written, in total.
        max_cost: Budget of money, in total, in the currency of the prices.
        input_price: Price of a million input tokens; a cost that the endpoint reports takes precedence.
        output_price: Price of a million output tokens.

    Raises:
        ConfigurationError: A number is out of its range, or only one price is given.
    """

    in_flight: int | None = option(None, least=1)
    requests_per_minute: float | None = option(None, above=0)
    tokens_per_minute: float | None = option(None, above=0)
    max_tokens: int | None = option(None, least=1)
    max_cost: float | None = option(None, above=0)
    input_price: float | None = option(None, least=0)
    output_price: float | None = option(None, least=0)

    def __post_init__(self) -> None:
        """Check every field."""
        super().__post_init__()
        if (self.input_price is None) != (self.output_price is None):
            raise ConfigurationError("input_price and output_price must be set together: give both, or neither.")


class Meter:
    """Counts tokens and cost of requests, and enforces the budgets.

    A budget is checked before each request, so only requests in flight can exceed it.

    Args:
        limits: The budgets and prices.
        url: The endpoint, for error messages.

    Attributes:
        tokens: Number of tokens so far.
        cost: Cost so far.
    """

    def __init__(self, limits: ChatLimits, url: str) -> None:
        self._limits, self._url = limits, url
        self._lock = threading.Lock()
        self.tokens = 0
        self.cost = 0.0

    def check(self) -> None:
        """Raise an error if a budget does not allow another request.

        Raises:
            EndpointBudgetError: A budget is spent.
        """
        most_tokens, most_cost = self._limits.max_tokens, self._limits.max_cost
        if most_tokens is not None and self.tokens >= most_tokens:
            raise EndpointBudgetError(
                f"The limit of tokens for the model at {self._url} is reached: {self.tokens} tokens were "
                f"used, and max_tokens={most_tokens}. Raise limits.max_tokens to continue."
            )
        if most_cost is not None and self.cost >= most_cost:
            raise EndpointBudgetError(
                f"The limit of cost for the model at {self._url} is reached: {self.cost:.4g} was spent, "
                f"and max_cost={most_cost:g} (in the currency of the prices). Raise limits.max_cost to continue."
            )

    def add(self, usage: Usage) -> float | None:
        """Count the tokens and the cost of a reply.

        Args:
            usage: Tokens and cost of the reply.

        Returns:
            The cost of the reply; ``None`` if the endpoint does not report it and no prices are given.

        Raises:
            ServiceError: There is a budget of tokens or cost, and the endpoint does not report the tokens or the cost.
        """
        cost, tokens = self._cost(usage), usage.tokens
        if (self._limits.max_tokens is not None and tokens is None) or (
            self._limits.max_cost is not None and cost is None
        ):
            lacking = (
                "token usage of a reply"
                if tokens is None
                else "cost of a reply, and no prices are set (limits.input_price, limits.output_price)"
            )
            raise ServiceError(
                f"The server {self._url} does not report the {lacking}, so the limit cannot be enforced: omit "
                "the limit, or use another server."
            )
        with self._lock:
            self.tokens += tokens or 0
            self.cost += cost or 0.0
        return cost

    def _cost(self, usage: Usage) -> float | None:
        if usage.cost is not None:
            return usage.cost
        price_in, price_out = self._limits.input_price, self._limits.output_price
        if price_in is None or price_out is None or usage.prompt_tokens is None or usage.completion_tokens is None:
            return None
        return (price_in * usage.prompt_tokens + price_out * usage.completion_tokens) / _MILLION


class Pace:
    """Delays requests so that all threads together stay within the limits per minute.

    Requests are spread evenly. The tokens of a reply are known only afterwards, so they delay later requests.

    Args:
        limits: The limits; only ``in_flight`` and the limits per minute are used.
    """

    def __init__(self, limits: ChatLimits) -> None:
        most = limits.in_flight
        self._seats: AbstractContextManager[Any] = nullcontext() if most is None else threading.BoundedSemaphore(most)
        self._request_s = 60 / limits.requests_per_minute if limits.requests_per_minute else 0.0
        self._token_s = 60 / limits.tokens_per_minute if limits.tokens_per_minute else 0.0
        self._lock = threading.Lock()
        self._free = self._tokens_free = self._held = 0.0

    def seat(self) -> AbstractContextManager[Any]:
        """Return a context that counts as one request in flight; entering it waits while ``in_flight`` requests run."""
        return self._seats

    def wait(self) -> None:
        """Wait until the limits per minute, and the delay set by ``hold``, allow another request."""
        while True:
            with self._lock:
                now = time.monotonic()
                wait = max(self._free, self._tokens_free, self._held) - now
                if wait <= 0:
                    self._free = now + self._request_s
                    return
            # The random part keeps threads that were delayed together from sending at the same time.
            time.sleep(wait + random.uniform(0, min(1.0, wait / 10)))

    def hold(self, seconds: float) -> None:
        """Delay all requests by some seconds, as the endpoint requested."""
        with self._lock:
            self._held = max(self._held, time.monotonic() + seconds)

    def add(self, tokens: int) -> None:
        """Count the tokens of a reply towards ``tokens_per_minute``."""
        with self._lock:
            self._tokens_free = max(self._tokens_free, time.monotonic()) + tokens * self._token_s
