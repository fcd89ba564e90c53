"""Sessions stay on their server, and report its loss."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, Outcome, Sandbox, make_sandbox

SMALL = {"preload": [], "workers": 2, "waiting": 2}


@pytest.fixture(scope="module")
def pair(serve: Any) -> Iterator[Any]:
    with serve(provider_options=SMALL) as one, serve(provider_options=SMALL) as other:
        yield one, other


@pytest.fixture
def remote(pair: Any) -> Iterator[Sandbox]:
    with make_sandbox("remote", urls=[server.url for server in pair]) as sandbox:
        yield sandbox


def cell(sandbox: Sandbox, code: str, name: str = "s", **limits: Any) -> Outcome:
    return sandbox.run(Job(code, session=name, limits=Limits(**limits)))


def test_state_lives_across_cells(remote: Sandbox) -> None:
    first, second = cell(remote, "x = 41"), cell(remote, "x + 1")
    assert (first.session, second.session, second.value) == ("new", "kept", "42")


def test_sessions_of_many_names_keep_apart_whatever_their_server(remote: Sandbox) -> None:
    jobs = [[Job(f"x = {number}", session=f"n{number}") for number in range(8)]]
    jobs.append([Job("x", session=f"n{number}") for number in range(8)])
    remote.run_many(jobs[0])
    assert [outcome.value for outcome in remote.run_many(jobs[1])] == [str(number) for number in range(8)]


def test_cells_sent_at_once_run_in_their_order(remote: Sandbox) -> None:
    outcomes = remote.run_many([Job("x = []", session="s"), *[Job(f"x.append({n})\nx", session="s") for n in range(6)]])
    assert outcomes[-1].value == "[0, 1, 2, 3, 4, 5]"


def test_two_clients_do_not_share_a_session(remote: Sandbox, pair: Any) -> None:
    cell(remote, "x = 1")
    with make_sandbox("remote", urls=[server.url for server in pair]) as other:
        outcome = cell(other, "x")
    assert (outcome.session, outcome.error_type) == ("new", "NameError")


def test_an_ended_session_starts_clean(remote: Sandbox) -> None:
    cell(remote, "x = 1")
    remote.end_session("s")
    remote.end_session("nobody's")
    outcome = cell(remote, "x")
    assert (outcome.session, outcome.error_type) == ("new", "NameError")


def test_an_interrupted_cell_keeps_the_state(remote: Sandbox) -> None:
    cell(remote, "x = 1")
    outcome = cell(remote, "while True: pass", wall_s=0.5)
    assert (outcome.status, outcome.session) == (ToolStatus.TIMEOUT, "interrupted")
    assert cell(remote, "x").value == "1"


def test_a_session_that_died_is_told_once(remote: Sandbox) -> None:
    cell(remote, "x = 1")
    died = cell(remote, "import os\nos._exit(3)")
    after = cell(remote, "1")
    assert (died.session, after.session) == ("ended", "new")
    assert died.session_note


def test_closing_the_client_ends_its_sessions(pair: Any, look: Any) -> None:
    def alive() -> float:
        return sum(server.metric("sessions") for server in pair)

    before = alive()
    with make_sandbox("remote", urls=[server.url for server in pair]) as sandbox:
        sandbox.run_many([Job("1", session=str(number)) for number in range(4)])
        assert alive() == before + 4
    look.wait_for(lambda: alive() == before)


@pytest.mark.slow
def test_a_restarted_server_has_lost_its_sessions_and_the_next_cell_says_so(serve: Any) -> None:
    with serve(provider_options=SMALL) as one:
        port = int(one.url.rpartition(":")[2])
        with make_sandbox("remote", url=one.url) as sandbox:
            cell(sandbox, "x = 1")
            one.process.kill()
            one.process.wait()
            with serve(port=port, provider_options=SMALL):
                outcome = cell(sandbox, "1")
                assert (outcome.session, outcome.value) == ("replaced", "1")
                assert "restarted" in (outcome.session_note or "")
                assert cell(sandbox, "1").session == "kept"


@pytest.mark.slow
def test_a_session_moves_when_its_server_stays_down(serve: Any, look: Any) -> None:
    with (
        serve(provider_options=SMALL) as one,
        serve(provider_options=SMALL) as other,
        make_sandbox("remote", urls=[one.url, other.url], reconnect_timeout_s=1.0) as sandbox,
        ThreadPoolExecutor(4) as pool,
    ):
        names = [f"n{number}" for number in range(8)]
        list(pool.map(lambda name: cell(sandbox, "import time\ntime.sleep(0.2)\nx = 1", name), names))
        assert min(one.metric("sessions"), other.metric("sessions")) > 0
        there = int(other.metric("sessions"))
        other.process.kill()
        outcomes = [cell(sandbox, "1", name) for name in names]
    # One that was sent before the client knew may have run: it is lost, and its session with it.
    fates = [outcome.session for outcome in outcomes]
    assert fates.count("kept") == 8 - there
    assert fates.count("replaced") + fates.count("ended") == there
    assert fates.count("ended") <= 1
    assert all(outcome.session_note for outcome in outcomes if outcome.session != "kept")
