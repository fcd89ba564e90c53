"""Rates and budgets that all threads of a process share."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rstar2_env.core.errors import ConfigurationError, EndpointBudgetError, ServiceError
from rstar2_env.core.net.chat.limits import ChatLimits, Meter, Pace
from rstar2_env.core.net.chat.reply import Usage


def test_requests_are_spread_over_the_minute_also_when_many_threads_ask() -> None:
    pace = Pace(ChatLimits(requests_per_minute=60 / 0.05))
    began = time.monotonic()
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: pace.wait(), range(6)))
    assert time.monotonic() - began >= 5 * 0.05


def test_the_tokens_of_a_reply_delay_the_requests_after_it() -> None:
    pace = Pace(ChatLimits(tokens_per_minute=60_000))
    pace.wait()
    pace.add(200)
    began = time.monotonic()
    pace.wait()
    assert time.monotonic() - began >= 0.19


def test_one_that_must_wait_holds_all_of_them() -> None:
    pace = Pace(ChatLimits())
    pace.hold(0.2)
    began = time.monotonic()
    waiting = threading.Thread(target=pace.wait)
    waiting.start()
    waiting.join(30)
    assert time.monotonic() - began >= 0.19


def test_no_more_requests_are_in_flight_than_there_are_seats() -> None:
    pace, lock = Pace(ChatLimits(in_flight=2)), threading.Lock()
    now, most = 0, 0

    def ask(_: int) -> None:
        nonlocal now, most
        with pace.seat():
            with lock:
                now += 1
                most = max(most, now)
            time.sleep(0.02)
            with lock:
                now -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(16)))
    assert most == 2


def test_the_cost_is_the_endpoints_own_or_that_of_the_prices() -> None:
    meter = Meter(ChatLimits(input_price=1.0, output_price=10.0, max_cost=1.0), "u")
    assert meter.add(Usage(100_000, 10_000)) == pytest.approx(0.2)
    assert meter.add(Usage(100_000, 10_000, cost=0.7)) == 0.7
    meter.check()
    meter.add(Usage(0, 20_000))
    with pytest.raises(EndpointBudgetError, match=r"at u is reached: 1\.1 was spent.*limits\.max_cost"):
        meter.check()


def test_without_prices_there_is_no_cost() -> None:
    assert Meter(ChatLimits(), "u").add(Usage(1, 1)) is None


@pytest.mark.parametrize(
    ("limits", "usage", "lacking"),
    [
        (ChatLimits(max_tokens=5), Usage(), "token usage"),
        (ChatLimits(max_cost=5.0), Usage(1, 1), "cost of a reply, and no prices"),
    ],
)
def test_a_budget_that_cannot_be_kept_is_told(limits: ChatLimits, usage: Usage, lacking: str) -> None:
    with pytest.raises(ServiceError, match=f"does not report the {lacking}"):
        Meter(limits, "u").add(usage)


def test_one_price_alone_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="must be set together"):
        ChatLimits(input_price=1.0)
