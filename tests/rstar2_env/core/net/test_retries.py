"""Which failures may pass, how long to wait, and whose words are shown."""

from __future__ import annotations

import email.utils
import time
from typing import Any

import pytest

from rstar2_env.core.net.retries import delay, failure, may_pass, reason, retry_after


def test_overload_and_a_servers_own_failure_may_pass_and_a_refusal_does_not() -> None:
    assert {status for status in range(200, 600) if may_pass(status)} == {408, 409, 425, 429, *range(500, 600)}


def test_the_wait_doubles_up_to_a_limit() -> None:
    for failures, longest in [(1, 0.25), (2, 0.5), (5, 4.0), (50, 30.0)]:
        waits = [delay(failures) for _ in range(200)]
        assert longest / 2 <= min(waits) < max(waits) <= longest


def test_retry_after_is_a_number_of_seconds_or_a_date() -> None:
    assert [retry_after(value) for value in ("1.5", "0", "-3", "9999", "soon", "", None)] == [
        1.5,
        0.0,
        0.0,
        60.0,
        None,
        None,
        None,
    ]
    soon = retry_after(email.utils.formatdate(time.time() + 30, usegmt=True))
    assert soon is not None
    assert 27 < soon < 31
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"error": {"message": "slow down"}}, "slow down"),
        ({"error": "slow down"}, "slow down"),
        ({"detail": [{"loc": "model"}]}, "[{'loc': 'model'}]"),
        ({"code": 7}, "{'code': 7}"),
        ("restarting", "restarting"),
        ("", "no reason given"),
    ],
)
def test_a_servers_words_are_found_where_servers_put_them(answer: Any, said: str) -> None:
    assert reason(answer) == said


def test_a_long_reason_is_cut() -> None:
    assert len(reason("x" * 10_000)) == 500


def test_a_failure_names_what_was_asked_and_how_often() -> None:
    assert failure("GET http://a/b", "404: no", 1) == "GET http://a/b failed: 404: no"
    assert failure("GET http://a/b", "503: no", 3) == "GET http://a/b failed (3 attempts): 503: no"
