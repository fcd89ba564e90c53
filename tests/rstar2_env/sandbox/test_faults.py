"""If any part of the sandbox is killed, stopped or starved, every call gets one outcome, without blaming a program."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from waiting import wait_for

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, LocalSandbox, Outcome, connection
from rstar2_env.sandbox.inside import wire

pytestmark = pytest.mark.deadlines

FREEZER = Path("/sys/fs/cgroup/freezer")
SLEEP = "import time\ntime.sleep(0.7)\n"


@pytest.fixture
def sandbox() -> Iterator[LocalSandbox]:
    """A sandbox that starts fast and notices a stall soon."""
    with LocalSandbox(workers=2, waiting=2, preload=(), stall_timeout_s=2.0) as made:
        yield made


def in_flight(sandbox: LocalSandbox, fault: Callable[[], None], calls: int = 6) -> list[Outcome]:
    """Run calls, let the fault strike while they run, and return every outcome."""
    with ThreadPoolExecutor(calls) as pool:
        futures = [pool.submit(sandbox.run, Job(f"{SLEEP}{number}")) for number in range(calls)]
        time.sleep(0.4)
        fault()
        return [future.result(60) for future in futures]


@pytest.mark.parametrize("which", [0, 1], ids=["warden", "zygote"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_what_is_killed_or_stopped_is_replaced_and_its_calls_run_again(
    sandbox: LocalSandbox, look: Any, which: int, how: int
) -> None:
    before = look.pids(sandbox)
    outcomes = in_flight(sandbox, lambda: os.kill(before[which], how))
    assert [outcome.value for outcome in outcomes] == [str(number) for number in range(6)]
    assert {outcome.attempts for outcome in outcomes} <= {1, 2}
    assert max(outcome.attempts for outcome in outcomes) == 2
    assert set(look.pids(sandbox)).isdisjoint(before)
    look.wait_for(lambda: not any(look.alive(pid) for pid in before))


def test_a_pid_1_killed_from_outside_is_our_failure_and_the_call_runs_again(look: Any) -> None:
    def kill_every_pid_1() -> None:  # of children that wait, too, so that a second start may be lost as well
        for pid in look.descendants(look.pids(sandbox)[1]):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as file:
                if any(line.startswith("NSpid") and line.split()[-1] == "1" for line in file):
                    os.kill(pid, signal.SIGKILL)

    with LocalSandbox(workers=2, waiting=2, preload=(), retries=3) as sandbox:
        outcomes = in_flight(sandbox, kill_every_pid_1, calls=2)
    assert [outcome.value for outcome in outcomes] == ["0", "1"]
    assert all(outcome.attempts > 1 for outcome in outcomes)


def test_children_that_wait_are_replaced_when_they_are_killed(sandbox: LocalSandbox, look: Any) -> None:
    look.settled(sandbox)
    before = look.pids(sandbox)
    for pid in look.descendants(before[1]):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert sandbox.run(Job("1")).value == "1"
    look.settled(sandbox)
    assert look.pids(sandbox) == before


def test_without_retries_a_lost_call_is_unavailable_and_says_why(look: Any) -> None:
    with LocalSandbox(workers=1, waiting=1, preload=(), retries=0) as sandbox:
        outcome = in_flight(sandbox, lambda: os.kill(look.pids(sandbox)[1], signal.SIGKILL), calls=1)[0]
        assert (outcome.status, outcome.attempts) == (ToolStatus.UNAVAILABLE, 1)
        assert "from which programs are forked has ended" in str(outcome.error_message)
        assert sandbox.run(Job("1")).value == "1"


def test_a_call_that_is_lost_again_and_again_is_unavailable_in_the_end(sandbox: LocalSandbox, look: Any) -> None:
    done = threading.Event()

    def keep_killing() -> None:
        while not done.wait(0.2):
            with contextlib.suppress(ProcessLookupError, AssertionError):
                os.kill(look.pids(sandbox)[1], signal.SIGKILL)

    thread = threading.Thread(target=keep_killing)
    thread.start()
    try:
        outcome = sandbox.run(Job("import time\ntime.sleep(60)", limits=Limits(wall_s=60)))
    finally:
        done.set()
        thread.join()
    assert (outcome.status, outcome.attempts) == (ToolStatus.UNAVAILABLE, 2)
    assert sandbox.run(Job("1")).value == "1"


def test_while_no_warden_can_be_started_calls_are_unavailable_and_later_ones_work_again(
    sandbox: LocalSandbox, look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("rstar2_env.sandbox.local.process.launch.__file__", "/no/such/file.py")
        os.kill(look.pids(sandbox)[0], signal.SIGKILL)
        for _ in range(2):
            outcome = sandbox.run(Job("1"))
            assert outcome.status is ToolStatus.UNAVAILABLE
            assert "did not start" in str(outcome.error_message)
    assert sandbox.run(Job("1")).value == "1"


def test_a_process_out_of_descriptors_answers_calls_and_later_ones_work_again(
    sandbox: LocalSandbox, look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_pipe() -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as short, ThreadPoolExecutor(1) as pool:
        call = pool.submit(sandbox.run, Job("import time\ntime.sleep(60)", limits=Limits(wall_s=60)))
        wait_for(lambda: sandbox.in_flight)
        short.setattr(connection, "os", SimpleNamespace(**{**vars(os), "pipe": no_pipe}))
        os.kill(look.pids(sandbox)[0], signal.SIGKILL)
        outcome = call.result(60)
    assert outcome.status is ToolStatus.UNAVAILABLE
    assert "Too many open files" in str(outcome.error_message)
    assert sandbox.run(Job("1")).value == "1"


def test_a_warden_short_of_descriptors_goes_on_with_those_it_has(sandbox: LocalSandbox, look: Any) -> None:
    look.settled(sandbox)
    warden = look.pids(sandbox)[0]
    # Room for one more child and a half.
    few = len(os.listdir(f"/proc/{warden}/fd")) + 6
    resource.prlimit(warden, resource.RLIMIT_NOFILE, (few, few))
    outcomes = sandbox.run_many([Job(str(number)) for number in range(30)])
    assert [outcome.value for outcome in outcomes] == [str(number) for number in range(30)]


@pytest.mark.skipif(not os.access("/sys/fs/cgroup/pids", os.W_OK), reason="needs a writable pids control group")
def test_a_machine_out_of_processes_delays_calls_and_loses_none(sandbox: LocalSandbox, look: Any) -> None:
    look.settled(sandbox)
    group = Path(f"/sys/fs/cgroup/pids/rstar2-test-{os.getpid()}")
    group.mkdir()
    try:
        (group / "cgroup.procs").write_text(str(look.pids(sandbox)[1]))
        (group / "pids.max").write_text("1")
        with ThreadPoolExecutor(6) as pool:
            futures = [pool.submit(sandbox.run, Job(str(number))) for number in range(6)]
            time.sleep(1.0)
            (group / "pids.max").write_text("max")
            assert [future.result(60).value for future in futures] == [str(number) for number in range(6)]
    finally:
        sandbox.close()
        look.wait_for(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


@pytest.mark.skipif(
    not os.access(FREEZER, os.W_OK), reason="needs a writable freezer of version 1, which stops SIGKILL"
)
def test_a_program_that_cannot_be_ended_costs_its_place_and_no_call_waits_for_it(look: Any) -> None:
    with (
        frozen() as freeze,
        LocalSandbox(workers=1, waiting=1, preload=(), stall_timeout_s=1.0) as sandbox,
        ThreadPoolExecutor(1) as pool,
    ):
        warden, zygote = look.pids(sandbox)
        for number in range(4):  # one more than there are places
            name = f"frozen {number}"
            code = f"import ctypes, time\nctypes.CDLL(None).prctl(15, b{name!r})\ntime.sleep(600)"
            call = pool.submit(sandbox.run, Job(code, limits=Limits(wall_s=4)))
            look.wait_for(lambda name=name: any(name_of(pid) == name for pid in look.descendants(zygote)))
            freeze(next(pid for pid in look.descendants(zygote) if name_of(pid) == name))
            assert call.result(60).status is ToolStatus.TIMEOUT
        assert sandbox.run(Job("6 * 7")).value == "42"
        assert look.pids(sandbox) == (warden, zygote), "everything was started anew"


@contextlib.contextmanager
def frozen() -> Iterator[Callable[[int], None]]:
    """Context in which processes are frozen, so that even SIGKILL does not end them."""
    group = FREEZER / f"rstar2-test-{os.getpid()}"
    group.mkdir()
    (group / "freezer.state").write_text("FROZEN")
    try:
        yield lambda pid: (group / "cgroup.procs").write_text(str(pid)) and None
    finally:
        (group / "freezer.state").write_text("THAWED")
        wait_for(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def name_of(pid: int) -> str:
    """Name that a process has set for itself."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as file:
        return file.read().strip()
    return ""


def test_a_message_that_makes_no_sense_costs_itself_alone(sandbox: LocalSandbox, look: Any) -> None:
    warden = look.pids(sandbox)[0]
    connection = sandbox._connection
    assert connection is not None
    whole = {
        "wall_s": 5.0,
        "cpu_s": 6.0,
        "memory_bytes": 1 << 29,
        "processes": 8,
        "output_bytes": 99,
        "file_bytes": 1 << 20,
    }
    broken = [{**whole, name: "no number"} for name in whole] + [{}, {"wall_s": 1.0}]
    with ThreadPoolExecutor(1) as pool:
        honest = pool.submit(sandbox.run, Job("import time\ntime.sleep(1)\n7"))
        for number, limits in enumerate(broken, start=10**6):
            header = {"op": "run", "id": number, "seed": 0, "limits": limits, "files": []}
            connection.send(wire.pack(header, (b"1", b"")))
            connection.send(wire.pack({**header, "id": number + 1000, "session": "s"}, (b"1", b"")))
        connection.send(wire.pack({"op": "run"}))
        connection.send(wire.pack({"op": "cancel"}))
        connection.send(wire.pack({}))
        assert honest.result(60).value == "7"
    assert sandbox.run(Job("1")).value == "1"
    assert sandbox.run(Job("1", session="t")).value == "1"
    assert look.pids(sandbox)[0] == warden, "the warden was replaced"


def storm(kills: int, seed: int, look: Any) -> tuple[int, int]:
    """Kill or stop parts of a sandbox at random under load; return the numbers of successful and lost calls."""
    draw = random.Random(seed)
    stop = threading.Event()
    counted: list[tuple[int, Outcome]] = []
    with LocalSandbox(workers=2, waiting=2, preload=(), stall_timeout_s=1.0) as sandbox:

        def load(start: int) -> None:
            number = start
            while not stop.is_set():
                number += 100
                counted.append((number, sandbox.run(Job(f"import time\ntime.sleep({draw.random() / 20})\n{number}"))))

        threads = [threading.Thread(target=load, args=(start,)) for start in range(6)]
        for thread in threads:
            thread.start()
        struck = 0
        while struck < kills:
            time.sleep(draw.random() / 4)
            with contextlib.suppress(ProcessLookupError, AssertionError):
                victim = draw.choice(look.pids(sandbox))
                os.kill(victim, signal.SIGSTOP if draw.random() < 0.05 else signal.SIGKILL)
                struck += 1
        stop.set()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a call never got its outcome"
        assert sandbox.run(Job("1")).value == "1"
        look.settled(sandbox)
    lost = [outcome for _, outcome in counted if outcome.status is ToolStatus.UNAVAILABLE]
    assert all(outcome.attempts == 2 for outcome in lost)
    well = [(number, outcome) for number, outcome in counted if outcome.status is not ToolStatus.UNAVAILABLE]
    assert all(outcome.value == str(number) for number, outcome in well)
    return len(well), len(lost)


def test_every_call_gets_one_outcome_of_its_own_in_a_storm_of_kills(look: Any) -> None:
    well, _ = storm(kills=12, seed=1, look=look)
    assert well > 0


@pytest.mark.proof
def test_every_call_gets_one_outcome_of_its_own_in_a_long_storm_of_kills(
    look: Any, record_property: Callable[[str, object], None]
) -> None:
    well, lost = storm(kills=200, seed=2, look=look)
    record_property("kills", 200)
    record_property("calls that went well", well)
    record_property("calls that were lost", lost)
    assert well > lost
