"""Limits on what a run asks of an endpoint: how fast, how many tokens, how much money.

Covered: limits that all threads of a process share. Not covered: what other processes ask of the same endpoint.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rstar2_env.core.errors import BudgetSpentError, ConfigurationError, ServiceError
from rstar2_env.core.net.chat.reply import Usage
from rstar2_env.core.options.declare import CheckedOptions, option

_MILLION = 1_000_000


@dataclass(frozen=True)
class ChatLimits(CheckedOptions):
    """Limits of everything that a process asks of an endpoint.

    Attributes:
        in_flight: Requests at the same time; ``None`` for as many as there are workers.
        requests_per_minute: Requests that are sent in a minute, evenly spread.
        tokens_per_minute: Tokens that are read and written in a minute, on average.
        max_tokens: Tokens that may be read and written altogether.
        max_cost: Money that may be spent altogether.
        input_price: Price of a million tokens that are read; an endpoint that says the cost of a reply is believed.
        output_price: Price of a million tokens that are written.

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
            raise ConfigurationError("input_price and output_price go together: give both, or neither.")


class Meter:
    """Counts tokens and cost, and enforces budgets.

    A budget is checked before each request, so only requests in flight can exceed it.

    Args:
        limits: The budgets and prices.
        url: The endpoint, for messages.

    Attributes:
        tokens: Tokens so far.
        cost: Money so far.
    """

    def __init__(self, limits: ChatLimits, url: str) -> None:
        self._limits, self._url = limits, url
        self._lock = threading.Lock()
        self.tokens = 0
        self.cost = 0.0

    def check(self) -> None:
        """Check that another request is allowed.

        Raises:
            BudgetSpentError: A budget is spent.
        """
        most_tokens, most_cost = self._limits.max_tokens, self._limits.max_cost
        if most_tokens is not None and self.tokens >= most_tokens:
            raise BudgetSpentError(
                f"{self.tokens} tokens were used at {self._url}, of max_tokens={most_tokens}: raise limits.max_tokens "
                "to continue."
            )
        if most_cost is not None and self.cost >= most_cost:
            raise BudgetSpentError(
                f"{self.cost:.4g} were spent at {self._url}, of max_cost={most_cost:g}: raise limits.max_cost to "
                "continue."
            )

    def add(self, usage: Usage) -> float | None:
        """Count a reply.

        Args:
            usage: Its tokens and cost.

        Returns:
            Its cost; ``None`` if neither the endpoint reports it nor prices are given.

        Raises:
            ServiceError: There is a budget, and the endpoint does not say what counts towards it.
        """
        cost, tokens = self._cost(usage), usage.tokens
        if (self._limits.max_tokens is not None and tokens is None) or (
            self._limits.max_cost is not None and cost is None
        ):
            lacking = "usage" if tokens is None else "cost, and no prices are given (limits.input_price, output_price)"
            raise ServiceError(f"{self._url} does not say the {lacking} of a reply, so no budget can be kept.")
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
    """Holds requests back so that all threads together stay within the rates.

    Requests are spread evenly. The tokens of a reply are known afterwards, so they delay the requests that follow.

    Args:
        limits: The rates.
    """

    def __init__(self, limits: ChatLimits) -> None:
        self._seats = None if limits.in_flight is None else threading.BoundedSemaphore(limits.in_flight)
        self._request_s = 60 / limits.requests_per_minute if limits.requests_per_minute else 0.0
        self._token_s = 60 / limits.tokens_per_minute if limits.tokens_per_minute else 0.0
        self._lock = threading.Lock()
        self._free = self._tokens_free = self._held = 0.0

    @contextmanager
    def seat(self) -> Iterator[None]:
        """One of the requests in flight."""
        if self._seats is None:
            yield
        else:
            with self._seats:
                yield

    def wait(self) -> None:
        """Wait until a request may be sent."""
        while True:
            with self._lock:
                now = time.monotonic()
                wait = max(self._free, self._tokens_free, self._held) - now
                if wait <= 0:
                    self._free = now + self._request_s
                    return
            # Threads that were held back together do not send together.
            time.sleep(wait + random.uniform(0, min(1.0, wait / 10)))

    def hold(self, seconds: float) -> None:
        """Send nothing for so many seconds, as the endpoint asked one of the threads."""
        with self._lock:
            self._held = max(self._held, time.monotonic() + seconds)

    def add(self, tokens: int) -> None:
        """Count the tokens of a reply."""
        with self._lock:
            self._tokens_free = max(self._tokens_free, time.monotonic()) + tokens * self._token_s
