"""The lifetime of sessions: turns, limits, cancelling, faults, cost, and guarantees without namespaces."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from session_tools import STUBBORN, cpu_of, holds_mark, state_of
from waiting import wait_for

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, LocalSandbox, Outcome

pytestmark = pytest.mark.deadlines

# Turns


def test_calls_of_one_session_run_one_after_the_other_in_their_order(local: LocalSandbox) -> None:
    jobs = [Job("seen = []", session="turns")]
    jobs += [Job(f"import time\ntime.sleep(0.02)\nseen.append({n})\nseen", session="turns") for n in range(5)]
    outcomes = local.run_many(jobs)
    assert [outcome.value for outcome in outcomes[1:]] == [str(list(range(n + 1))) for n in range(5)]
    local.end_session("turns")


def test_different_sessions_run_at_once(small: LocalSandbox) -> None:
    meet = "import time\nstarted = time.monotonic()\ntime.sleep(1.5)\n(started, time.monotonic())"
    spans = [eval(o.value or "") for o in small.run_many([Job(meet, session="a"), Job(meet, session="b")])]
    assert max(start for start, _ in spans) < min(end for _, end in spans)


def test_an_idle_session_takes_no_worker() -> None:
    with LocalSandbox(workers=1, waiting=1, preload=()) as sandbox:
        for number in range(5):
            sandbox.run(Job(f"x = {number}", session=f"s{number}"))
        assert sandbox.run(Job("print('through')")).stdout == "through\n"
        values = [sandbox.run(Job("x", session=f"s{number}")).value for number in range(5)]
        assert values == ["0", "1", "2", "3", "4"]


def test_a_hundred_cells_from_ten_threads_are_all_counted(local: LocalSandbox) -> None:
    local.run(Job("count = 0", session="shared"))
    with ThreadPoolExecutor(10) as pool:
        list(pool.map(lambda _: local.run(Job("count += 1", session="shared")), range(100)))
    assert local.run(Job("count", session="shared")).value == "100"
    local.end_session("shared")


# Bounds


def test_the_least_recently_used_session_goes_first_and_its_next_call_says_so(small: LocalSandbox) -> None:
    small.run(Job("x = 'a'", session="a"))
    small.run(Job("x = 'b'", session="b"))
    small.run(Job("x", session="a"))
    assert small.run(Job("x = 'c'", session="c")).session == "new"
    assert small.run(Job("x", session="a")).value == "'a'"
    replaced = small.run(Job("'x' in globals()", session="b"))
    assert (replaced.session, replaced.value) == ("replaced", "False")
    assert "too many sessions" in (replaced.session_note or "")
    assert "least recently used" in (replaced.session_note or "")
    assert small.run(Job("1", session="b")).session == "kept"


def test_a_session_that_runs_a_cell_is_never_sent_away(small: LocalSandbox) -> None:
    sleepers = [Job("import time\ntime.sleep(0.7)\n'slept'", session=name) for name in "abcd"]
    outcomes = small.run_many([*sleepers, Job("'alone'")])
    assert [outcome.value for outcome in outcomes] == ["'slept'"] * 4 + ["'alone'"]
    assert {outcome.session for outcome in outcomes[:4]} == {"new"}


@pytest.mark.slow
def test_an_idle_session_is_ended_after_its_time(look: Any) -> None:
    with LocalSandbox(workers=1, waiting=1, preload=(), session_timeout_s=0.5) as sandbox:
        sandbox.run(Job("x = 1", session="a"))
        time.sleep(1.5)
        assert look.settled(sandbox).processes == 2  # of the child that waits
        replaced = sandbox.run(Job("'x' in globals()", session="a"))
    assert (replaced.session, replaced.value) == ("replaced", "False")
    assert "idle for 0.5 seconds" in (replaced.session_note or "")


def test_the_memory_limits_of_all_sessions_add_up_to_no_more_than_asked() -> None:
    with LocalSandbox(workers=1, waiting=1, preload=(), session_memory_mb=300) as sandbox:
        limits = Limits(memory_mb=128)
        for name in ("a", "b", "c"):
            sandbox.run(Job("x = 1", session=name, limits=limits))
        assert "memory for sessions" in (sandbox.run(Job("1", session="a", limits=limits)).session_note or "")


def test_an_ended_session_starts_clean_as_a_new_one(local: LocalSandbox) -> None:
    local.run(Job("x = 1", session="gone"))
    local.end_session("gone")
    outcome = local.run(Job("'x' in globals()", session="gone"))
    assert (outcome.session, outcome.session_note, outcome.value) == ("new", None, "False")
    local.end_session("gone")
    local.end_session("there never was one")


@pytest.mark.slow
def test_sessions_that_were_ended_leave_nothing_behind(small: LocalSandbox, look: Any) -> None:
    for name in ("a", "b"):  # makes the places that sessions have, once and for all
        small.run(Job("1", session=name))
    for name in ("a", "b"):
        small.end_session(name)
    before = look.settled(small)
    for _ in range(3):
        small.run(Job("import os\nif os.fork() == 0:\n    import time; time.sleep(60)", session="a"))
        small.run(Job(STUBBORN, session="b", limits=Limits(wall_s=0.1)))
        small.end_session("a")
    assert look.settled(small) == before


def test_a_call_in_flight_when_its_session_is_ended_is_unavailable(local: LocalSandbox) -> None:
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(local.run, Job("import time\ntime.sleep(30)", session="cut"))
        time.sleep(0.3)
        second = pool.submit(local.run, Job("2", session="cut"))
        time.sleep(0.1)
        local.end_session("cut")
        outcomes = [first.result(20), second.result(20)]
    assert [(outcome.status, outcome.session) for outcome in outcomes] == [(ToolStatus.UNAVAILABLE, "ended")] * 2
    assert local.run(Job("1", session="cut")).session == "new"
    local.end_session("cut")


def test_a_cell_that_waits_for_a_worker_when_its_session_is_ended_never_runs() -> None:
    with LocalSandbox(workers=1, waiting=1, preload=()) as sandbox, ThreadPoolExecutor(2) as pool:
        sandbox.run(Job("x = 1", session="a"))
        busy = pool.submit(sandbox.run, Job("import time\ntime.sleep(2)\n'busy'"))
        time.sleep(0.3)
        waits = pool.submit(sandbox.run, Job("x = 2", session="a"))
        time.sleep(0.2)
        sandbox.end_session("a")
        assert (waits.result(20).status, waits.result(20).session) == (ToolStatus.UNAVAILABLE, "ended")
        assert busy.result(20).value == "'busy'"
        assert sandbox.run(Job("'x' in globals()", session="a")).value == "False"


# Cancelling


def cancelled(sandbox: LocalSandbox, job: Job, after: float = 1.0) -> None:
    async def main() -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(sandbox.arun(job), after)

    asyncio.run(main())


def test_a_cancelled_cell_is_interrupted_and_the_next_is_told(local: LocalSandbox) -> None:
    local.run(Job("x = 1", session="cancel"))
    cancelled(local, Job("import time\nx = 2\ntime.sleep(60)", session="cancel"))
    after = local.run(Job("x", session="cancel"))
    assert (after.value, after.session) == ("2", "kept")
    assert "cancelled and interrupted" in (after.session_note or "")
    local.end_session("cancel")


def test_a_cancelled_cell_that_does_not_stop_ends_its_session_and_the_next_is_told(local: LocalSandbox) -> None:
    local.run(Job("x = 1", session="cancel2"))
    cancelled(local, Job(STUBBORN, session="cancel2"))
    after = local.run(Job("'x' in globals()", session="cancel2"))
    assert (after.value, after.session) == ("False", "replaced")
    assert "was cancelled and did not stop" in (after.session_note or "")
    local.end_session("cancel2")


def test_a_cancelled_call_that_waits_for_its_turn_never_runs(local: LocalSandbox) -> None:
    async def main() -> list[Outcome]:
        first = asyncio.create_task(local.arun(Job("import time\ntime.sleep(0.5)\nran = [1]", session="turn")))
        await asyncio.sleep(0.1)
        second = asyncio.create_task(local.arun(Job("ran.append(2)", session="turn")))
        third = asyncio.create_task(local.arun(Job("ran", session="turn")))
        await asyncio.sleep(0.1)
        second.cancel()
        return [await first, await third]

    assert asyncio.run(main())[1].value == "[1]"
    local.end_session("turn")


# Faults


@pytest.mark.parametrize("which", [0, 1], ids=["warden", "zygote"])
def test_a_session_does_not_survive_the_provider_and_its_next_call_says_so(
    small: LocalSandbox, look: Any, which: int
) -> None:
    small.run(Job("x = 1", session="a"))
    old = look.pids(small)
    below = look.descendants(old[0])
    os.kill(old[which], signal.SIGKILL)
    look.wait_for(lambda: not any(look.alive(pid) for pid in (*old, *below)))
    look.wait_for(lambda: small._connection is not None and look.pids(small) != old)
    after = small.run(Job("'x' in globals()", session="a"))
    assert (after.session, after.value) == ("replaced", "False")
    assert "restarted" in (after.session_note or "")
    assert small.run(Job("1", session="a")).session == "kept"


def test_a_lost_cell_with_earlier_ones_is_not_run_again_without_their_state(small: LocalSandbox, look: Any) -> None:
    small.run(Job("x = 1", session="a"))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(small.run, Job("import time\ntime.sleep(2)\n'x' in globals()", session="a"))
        time.sleep(0.4)
        os.kill(look.pids(small)[0], signal.SIGKILL)
        lost = running.result(60)
    assert (lost.status, lost.session, lost.attempts) == (ToolStatus.UNAVAILABLE, "ended", 1)
    assert (lost.session_note or "").startswith("The session was ended: ")
    assert small.run(Job("1", session="a")).session == "new"


def test_a_lost_first_cell_runs_again(small: LocalSandbox, look: Any) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(small.run, Job("import time\ntime.sleep(1.5)\n'through'", session="a"))
        time.sleep(0.4)
        os.kill(look.pids(small)[0], signal.SIGKILL)
        outcome = running.result(60)
    assert (outcome.value, outcome.session, outcome.attempts) == ("'through'", "new", 2)


def test_a_session_whose_process_ended_while_idle_died(small: LocalSandbox, look: Any) -> None:
    small.run(Job("x = 1", session="a"))
    small.run(Job("import os\nos.open('mark', os.O_CREAT)", session="a"))
    [process] = [pid for pid in look.descendants(look.pids(small)[1]) if holds_mark(pid)]
    os.kill(process, signal.SIGKILL)
    look.wait_for(lambda: not look.alive(process))
    small.run(Job("1"))  # ends are told in their order: once this one's is, the warden knows of the other
    after = small.run(Job("'x' in globals()", session="a"))
    assert (after.session, after.value) == ("died", "False")
    assert "between two cells: its process was ended by SIGKILL" in (after.session_note or "")


def test_a_session_whose_process_ended_while_its_next_cell_waits_for_a_worker_died(look: Any) -> None:
    with LocalSandbox(workers=1, waiting=1, preload=()) as sandbox, ThreadPoolExecutor(2) as pool:
        sandbox.run(Job("import os\nos.open('mark', os.O_CREAT)", session="a"))
        busy = pool.submit(sandbox.run, Job("import time\ntime.sleep(2)\n'busy'"))
        time.sleep(0.3)
        waits = pool.submit(sandbox.run, Job("'os' in globals()", session="a"))
        time.sleep(0.2)
        [process] = [pid for pid in look.descendants(look.pids(sandbox)[1]) if holds_mark(pid)]
        os.kill(process, signal.SIGKILL)
        assert (waits.result(20).value, waits.result(20).session) == ("False", "died")
        assert busy.result(20).value == "'busy'"
        assert sandbox.run(Job("1", session="a")).session == "kept"


def test_a_pid_1_killed_from_outside_loses_the_cell_and_not_the_others(small: LocalSandbox, look: Any) -> None:
    small.run(Job("x = 1", session="a"))
    small.run(Job("y = 1", session="b"))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(
            small.run, Job("import os, time\nos.open('mark', os.O_CREAT)\ntime.sleep(5)", session="a")
        )
        look.wait_for(lambda: any(holds_mark(pid) for pid in look.descendants(look.pids(small)[1])))
        spaces = {pid: os.readlink(f"/proc/{pid}/ns/pid") for pid in look.descendants(look.pids(small)[1])}
        [process] = [pid for pid in spaces if holds_mark(pid)]
        [init] = [pid for pid in spaces if pid != process and spaces[pid] == spaces[process]]
        os.kill(init, signal.SIGKILL)
        lost = running.result(30)
    assert (lost.status, lost.session) == (ToolStatus.UNAVAILABLE, "ended")
    assert small.run(Job("y", session="b")).value == "1"


@pytest.mark.slow
def test_random_kills_of_the_warden_leave_every_cell_with_one_true_outcome(small: LocalSandbox, look: Any) -> None:
    """The reported state of a session always agrees with its actual state."""
    stop = threading.Event()

    def play(name: str) -> list[str]:
        wrong, expected = [], 0
        while not stop.is_set():
            outcome = small.run(Job("count = globals().get('count', 0) + 1\ncount", session=name))
            if outcome.session in ("new", "replaced"):
                expected = 0
            if outcome.status is ToolStatus.UNAVAILABLE:
                expected = 0
                continue
            expected += 1
            if outcome.value != str(expected):
                wrong.append(f"{name}: {outcome}, expected {expected}")
        return wrong

    with ThreadPoolExecutor(2) as pool:
        players = [pool.submit(play, name) for name in "ab"]
        for _ in range(5):
            time.sleep(0.5)
            with contextlib.suppress(ProcessLookupError, AssertionError):
                os.kill(look.pids(small)[0], signal.SIGKILL)
        time.sleep(0.5)
        stop.set()
        assert [player.result(60) for player in players] == [[], []]


# Cost


def test_an_idle_session_costs_no_cpu(small: LocalSandbox, look: Any) -> None:
    for name in ("a", "b"):
        small.run(Job("x = 1", session=name))
    pids = look.descendants(look.pids(small)[1])
    before = sum(map(cpu_of, pids))
    time.sleep(1.5)
    assert sum(map(cpu_of, pids)) - before <= 0.02


def test_what_a_session_writes_while_it_rests_wakes_nobody_and_comes_with_its_next_cell(
    small: LocalSandbox, look: Any
) -> None:
    later = "import threading\nthreading.Timer(0.02, print, ['later']).start()"
    assert small.run(Job(later, session="a")).stdout == ""
    warden = look.pids(small)[0]
    wait_for(lambda: any(state_of(pid) == "T" for pid in look.descendants(look.pids(small)[1])))  # after it wrote
    before = cpu_of(warden)
    time.sleep(1.0)
    assert cpu_of(warden) - before <= 0.2
    more = small.run(Job("print('n' * 300_000)", session="a")).stdout  # than a pipe holds
    assert (more[:6], len(more)) == ("later\n", 6 + 300_001)
    assert small.run(Job("print('again')", session="a")).stdout == "again\n"


LEFT = """
import os, threading, time
counted = 0
def count():
    global counted
    while True:
        counted += 1
        time.sleep(0)
threading.Thread(target=count, daemon=True).start()
for _ in range(3):
    if os.fork() == 0:
        while True: pass
print("left", flush=True)
"""


def test_what_a_cell_leaves_behind_stands_still_between_cells_and_goes_on_with_the_next(
    small: LocalSandbox, look: Any
) -> None:
    assert small.run(Job(LEFT, session="a")).stdout == "left\n"
    zygote = look.pids(small)[1]

    def halted() -> list[int]:
        return [pid for pid in look.descendants(zygote) if state_of(pid) == "T"]

    wait_for(lambda: len(halted()) == 4)
    left = halted()
    before = [cpu_of(pid) for pid in left]
    for number in range(20):  # other calls, which take what they need
        assert small.run(Job(f"import time\ntime.sleep(0.01)\n{number}")).value == str(number)
    assert [cpu_of(pid) for pid in left] == before
    first = small.run(Job("first = counted\nwhile counted == first: time.sleep(0.001)\nfirst", session="a"))
    assert (first.status, first.session) == (ToolStatus.OK, "kept")


def test_a_cell_that_follows_a_halt_runs_as_the_first_did(small: LocalSandbox, look: Any) -> None:
    for number in range(4):
        outcome = small.run(Job(f"x = {number}\nx", session="a"))
        assert (outcome.value, outcome.session_note) == (str(number), None)
        zygote = look.pids(small)[1]
        wait_for(lambda zygote=zygote: any(state_of(pid) == "T" for pid in look.descendants(zygote)))


# Without namespaces


@pytest.mark.slow
def test_without_namespaces_or_control_groups_sessions_keep_their_promises() -> None:
    without = ("pid", "mount", "net", "ipc", "uts", "cgroup", "user", "cgroups")
    with LocalSandbox(workers=1, waiting=1, preload=(), without=without) as sandbox:

        def cell(code: str, **fields: Any) -> Outcome:
            return sandbox.run(Job(code, session="a", **fields))

        limits = Limits(memory_mb=128, wall_s=1.0)
        cell("x = 1", limits=limits)
        assert cell("import time\ntime.sleep(60)", limits=limits).session == "interrupted"
        assert cell("x").value == "1"
        fork = "import os, time\nif os.fork() == 0:\n    time.sleep(60)"
        assert cell(fork).session == "kept"
        hog = """
for _ in range(5):
    if os.fork() == 0:
        held = bytearray(100 << 20)
        for at in range(0, len(held), 4096): held[at] = 1
        time.sleep(60)
time.sleep(4)
"""
        hogged = cell(hog, limits=Limits(wall_s=8))
        assert (hogged.status, hogged.session) == (ToolStatus.MEMORY, "ended")
        assert cell("'x' in globals()").value == "False"
