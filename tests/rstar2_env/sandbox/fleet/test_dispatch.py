"""Waiting calls are sent as soon as a server can accept them, after any failure; the tests script the servers."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

from flaky_server import Answer, Asked, flaky
from waiting import wait_for

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, Outcome, Sandbox, make_sandbox
from rstar2_env.sandbox.fleet.codec import PROTOCOL, outcome_to_json

FACTS = {"protocol": PROTOCOL, "boot": "b", "slots": 1, "room": 1000, "max_request_bytes": 1 << 20, "layers": []}
CAPABILITIES = (200, {**FACTS, "beat_s": 20.0, "max_limits": asdict(Limits())})
STARTING = (503, {"error": "starting"})
FAILED = Outcome(ToolStatus.UNAVAILABLE, error_message="its sandbox failed")


def outcomes(asked: Asked, outcome: Outcome) -> Answer:
    """The same outcome for each call of a request."""
    said = outcome_to_json(outcome)
    return 200, "".join(json.dumps({"id": call["id"], "outcome": said}) + "\n" for call in asked.body["calls"])


def ran(where: str) -> Outcome:
    return Outcome(ToolStatus.OK, value=where)


@contextlib.contextmanager
def two_servers(one: Callable[[Asked], Answer], other: Callable[[Asked], Answer]) -> Iterator[tuple[Sandbox, Any, Any]]:
    """A client of two servers with the given answers."""
    with (
        flaky(lambda asked, _: one(asked)) as first,
        flaky(lambda asked, _: other(asked)) as second,
        make_sandbox("remote", urls=[first.address, second.address]) as sandbox,
    ):
        yield sandbox, first, second


def batches(server: Any) -> list[list[str]]:
    """Ids of the calls of each received request."""
    return [[call["id"] for call in asked.body["calls"]] for asked in server.asked if asked.path == "/v1/calls"]


def test_calls_that_one_idle_server_failed_go_to_the_other_idle_one() -> None:
    well = threading.Event()

    def failing(asked: Asked) -> Answer:
        if asked.path != "/v1/calls":
            return CAPABILITIES
        return outcomes(asked, ran("one") if len(batches(first)) > 1 else FAILED)

    def slow(asked: Asked) -> Answer:
        if asked.path != "/v1/calls":
            return CAPABILITIES
        assert well.wait(60)
        return outcomes(asked, ran("other"))

    with ThreadPoolExecutor(1) as pool, two_servers(failing, slow) as (sandbox, first, second):
        calls = pool.submit(sandbox.run_many, [Job("1")] * 4)
        wait_for(lambda: batches(first) and batches(second))
        assert sandbox.run(Job("1")).value == "one", "its sandbox is well again"
        well.set()
        found = calls.result(30)
    assert {(outcome.value, outcome.attempts) for outcome in found} == {("other", 1), ("other", 2)}
    assert list(map(len, batches(first))) == [2, 1]


def test_a_failed_call_whose_connection_was_lost_is_asked_for_where_it_may_run() -> None:
    lost, other_up = threading.Event(), threading.Event()

    def one(asked: Asked) -> Answer:
        if asked.path != "/v1/calls":
            return CAPABILITIES if not lost.is_set() or other_up.is_set() else STARTING
        if len(batches(first)) == 1:
            return outcomes(asked, FAILED)
        if len(batches(first)) > 2:
            return outcomes(asked, ran("one"))
        lost.set()
        return None

    def late(asked: Asked) -> Answer:
        if asked.path != "/v1/calls":
            if not lost.is_set():
                return STARTING
            other_up.set()
            return CAPABILITIES
        return outcomes(asked, ran("other"))

    with ThreadPoolExecutor(1) as pool, two_servers(one, late) as (sandbox, first, _):
        outcome = pool.submit(sandbox.run, Job("1")).result(30)
    assert (outcome.value, outcome.attempts) == ("one", 2)
    (failed,), (sent,), (again,) = batches(first)
    assert failed != sent == again
