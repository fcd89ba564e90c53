"""Connections cut, servers killed, stopped and restarted under load: every call runs once and has one outcome."""

from __future__ import annotations

import contextlib
import random
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from waiting import wait_for

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, make_sandbox

SMALL = {"preload": [], "workers": 2, "waiting": 2}


class Saboteur:
    """A proxy on this machine that cuts connections while it is ``active``, after a number of bytes of answers or
    requests that is drawn for each connection.
    """

    def __init__(self, target: str, seed: int = 0) -> None:
        self.active = False
        self.cuts = 0
        self._target = ("127.0.0.1", int(target.rpartition(":")[2]))
        self._draw = random.Random(seed)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                answers = self._draw.random() < 0.6
                after = self._draw.choice((0, 1, 100, 300, 1000, 3000, 10_000))
                self._start(caller, server, None if answers else after)
                self._start(server, caller, after if answers else None)

    def _start(self, source: socket.socket, sink: socket.socket, cut: int | None) -> None:
        threading.Thread(target=self._pump, args=(source, sink, cut), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, cut: int | None) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if self.active and cut is not None and passed + len(data) > cut:
                    sink.sendall(data[: max(0, cut - passed)])
                    self.cuts += 1
                    break
                passed += len(data)
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()  # the other direction's thread closes the other end


@pytest.fixture
def sabotaged(serve: Any) -> Iterator[Any]:
    with serve(provider_options=SMALL) as server:
        saboteur = Saboteur(server.url)
        yield server, saboteur
        saboteur.close()


def connect(*urls: str, **options: Any) -> Any:
    return make_sandbox("remote", urls=urls, **options)


def numbers(count: int, head: str = "") -> list[Job]:
    return [Job(f"{head}{number}") for number in range(count)]


def test_lost_connections_run_no_call_twice(sabotaged: Any) -> None:
    server, saboteur = sabotaged
    with connect(saboteur.url, batch=4) as sandbox:
        saboteur.active = True
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda job: sandbox.run(job).value, numbers(200)))
            found += [outcome.value for outcome in sandbox.run_many(numbers(100))]
        saboteur.active = False
    assert found == [str(number) for number in [*range(200), *range(100)]]
    assert saboteur.cuts > 10
    assert server.metric("started_total") == 300


def test_every_connection_lost_is_unavailable_in_the_end_and_nothing_hangs(sabotaged: Any) -> None:
    server, saboteur = sabotaged
    with connect(saboteur.url, reconnect_timeout_s=1.0) as sandbox:
        saboteur.close()
        server.process.kill()
        started = time.monotonic()
        outcomes = sandbox.run_many(numbers(20))
        assert time.monotonic() - started < 30
    assert {outcome.status for outcome in outcomes} == {ToolStatus.UNAVAILABLE}
    assert all(saboteur.url in (outcome.error_message or "") for outcome in outcomes)


@pytest.mark.slow
def test_a_server_killed_under_load_leaves_every_call_with_one_outcome(serve: Any) -> None:
    with (
        serve(provider_options=SMALL) as one,
        serve(provider_options=SMALL) as other,
        connect(one.url, other.url, reconnect_timeout_s=1.0, batch=8) as sandbox,
        ThreadPoolExecutor(1) as pool,
    ):
        load = pool.submit(sandbox.run_many, numbers(400, "import time\ntime.sleep(0.02)\n"))
        wait_for(lambda: other.metric("calls_total") >= 40)
        other.process.kill()
        outcomes = load.result(120)
        lost = [outcome for outcome in outcomes if outcome.status is ToolStatus.UNAVAILABLE]
        assert 0 < len(lost) <= 4 + 8  # what it had: nobody can know whether it ran
        assert all(other.url in (outcome.error_message or "") for outcome in lost)
        assert [outcome.value or str(number) for number, outcome in enumerate(outcomes)] == [
            str(number) for number in range(400)
        ]
        assert sandbox.run(Job("1 + 1")).value == "2"


def test_a_server_whose_sandbox_fails_costs_no_call_and_gets_few(serve: Any) -> None:
    with serve(provider="failing") as failing, serve(provider_options=SMALL) as other:
        with connect(failing.url, other.url, batch=4) as sandbox:
            outcomes = sandbox.run_many(numbers(100, "import time\ntime.sleep(0.02)\n"))
        assert [outcome.value for outcome in outcomes] == [str(number) for number in range(100)]
        tried = failing.metric("started_total")
        assert {outcome.attempts for outcome in outcomes} == {1, 2}
        assert 0 < tried < 20, "each failure makes it rest, longer each time"


@pytest.mark.slow
def test_a_cell_in_flight_on_a_lost_server_is_not_run_without_its_state(serve: Any, look: Any) -> None:
    with serve(provider_options=SMALL) as one:
        port = int(one.url.rpartition(":")[2])
        with connect(one.url) as sandbox, ThreadPoolExecutor(1) as pool:
            assert sandbox.run(Job("x = 1", session="s")).session == "new"
            cell = Job("import time\ntime.sleep(2)\nx", session="s", limits=Limits(wall_s=20))
            call = pool.submit(sandbox.run, cell)
            look.wait_for(lambda: one.metric("in_flight") == 1)
            one.process.kill()
            one.process.wait()
            with serve(port=port, provider_options=SMALL) as again:
                ended = call.result(60)
                assert (ended.status, ended.session, ended.attempts) == (ToolStatus.UNAVAILABLE, "ended", 1)
                assert again.metric("started_total") == 0
                assert sandbox.run(Job("1", session="s")).session == "new"


@pytest.mark.slow
def test_a_server_that_was_restarted_has_lost_its_calls_and_they_run_elsewhere(serve: Any, look: Any) -> None:
    with serve(provider_options=SMALL) as one:
        port = int(one.url.rpartition(":")[2])
        with connect(one.url) as sandbox, ThreadPoolExecutor(1) as pool:
            job = Job("import time\ntime.sleep(1.5)\n'done'", limits=Limits(wall_s=20))
            call = pool.submit(sandbox.run, job)
            look.wait_for(lambda: one.metric("in_flight") == 1)
            one.process.kill()
            one.process.wait()
            with serve(port=port, provider_options=SMALL) as again:
                outcome = call.result(60)
                assert (outcome.value, outcome.attempts) == ("'done'", 2)
                assert again.metric("started_total") == 1


@pytest.mark.slow
def test_a_call_that_is_lost_again_and_again_is_given_up(serve: Any, look: Any) -> None:
    with serve(provider_options=SMALL) as one:
        port = int(one.url.rpartition(":")[2])
        with connect(one.url, retries=0) as sandbox, ThreadPoolExecutor(1) as pool:
            call = pool.submit(sandbox.run, Job("import time\ntime.sleep(20)", limits=Limits(wall_s=30)))
            look.wait_for(lambda: one.metric("in_flight") == 1)
            one.process.kill()
            one.process.wait()
            with serve(port=port, provider_options=SMALL) as again:
                outcome = call.result(60)
                assert outcome.status is ToolStatus.UNAVAILABLE
                assert "restarted" in (outcome.error_message or "")
                assert again.metric("started_total") == 0


@pytest.mark.proof
def test_a_rolling_restart_loses_no_call(serve: Any) -> None:
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(serve(provider_options=SMALL)) for _ in range(2)]
        with connect(*(server.url for server in servers), batch=8) as sandbox, ThreadPoolExecutor(1) as pool:
            load = pool.submit(sandbox.run_many, numbers(400, "import time\ntime.sleep(0.02)\n"))
            for server in servers:
                time.sleep(0.5)
                server.process.send_signal(signal.SIGTERM)
                assert server.process.wait(30) == 0
                port = int(server.url.rpartition(":")[2])
                stack.enter_context(serve(port=port, provider_options=SMALL))
            outcomes = load.result(120)
    assert [outcome.value for outcome in outcomes] == [str(number) for number in range(400)]
    assert {outcome.attempts for outcome in outcomes} == {1}


@pytest.mark.slow
def test_a_server_that_stalls_is_left_and_found_again(serve: Any) -> None:
    with (
        serve(beat_s=0.3, provider_options=SMALL) as one,
        serve(beat_s=0.3, provider_options=SMALL) as other,
        connect(one.url, other.url) as sandbox,
        ThreadPoolExecutor(1) as pool,
    ):
        load = pool.submit(sandbox.run_many, numbers(300, "import time\ntime.sleep(0.02)\n"))
        wait_for(lambda: other.metric("calls_total") >= 20)
        other.process.send_signal(signal.SIGSTOP)
        time.sleep(7)
        other.process.send_signal(signal.SIGCONT)
        assert [outcome.value for outcome in load.result(120)] == [str(number) for number in range(300)]
        assert one.metric("started_total") + other.metric("started_total") == 300


def test_a_server_that_was_down_at_the_start_joins_later(serve: Any, look: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with serve(provider_options=SMALL) as one, connect(one.url, f"http://127.0.0.1:{port}") as sandbox:
        assert sandbox.run(Job("1 + 1")).value == "2"
        with serve(port=port, provider_options=SMALL) as late:

            def helped() -> bool:
                sandbox.run_many(numbers(20))
                return bool(late.metric("started_total") > 0)

            look.wait_for(helped)


@pytest.mark.proof
def test_servers_share_the_load_by_what_they_can(serve: Any) -> None:
    with (
        serve(provider_options={**SMALL, "workers": 1}) as small,
        serve(provider_options={**SMALL, "workers": 3}) as large,
        connect(small.url, large.url, batch=4) as sandbox,
    ):
        sandbox.run_many(numbers(160, "import time\ntime.sleep(0.05)\n"))
        assert small.metric("started_total") + large.metric("started_total") == 160
        assert large.metric("started_total") > 1.5 * small.metric("started_total")
