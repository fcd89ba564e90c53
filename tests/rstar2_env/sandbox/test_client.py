"""Calls from any thread and event loop, many at once, cancelled, and after closing."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from waiting import wait_for

from rstar2_env.core.errors import SandboxUnavailableError
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, Limits, LocalSandbox, Sandbox, make_sandbox

SLEEP = Job("import time\ntime.sleep(60)", limits=Limits(wall_s=60))


def test_it_keeps_the_protocol(local: LocalSandbox) -> None:
    assert isinstance(local, Sandbox)


def test_many_jobs_come_back_in_their_order(local: LocalSandbox) -> None:
    outcomes = local.run_many([Job(str(number)) for number in range(40)])
    assert [outcome.value for outcome in outcomes] == [str(number) for number in range(40)]


def test_threads_get_their_own_outcomes(local: LocalSandbox) -> None:
    with ThreadPoolExecutor(16) as pool:
        values = list(pool.map(lambda number: local.run(Job(str(number))).value, range(80)))
    assert values == [str(number) for number in range(80)]


def test_event_loops_in_several_threads_share_it(local: LocalSandbox) -> None:
    async def go(start: int) -> list[str | None]:
        outcomes = await asyncio.gather(*(local.arun(Job(str(start + number))) for number in range(10)))
        return [outcome.value for outcome in outcomes]

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda start: asyncio.run(go(start)), (0, 100, 200)))
    assert found == [[str(start + number) for number in range(10)] for start in (0, 100, 200)]


def test_the_event_loop_goes_on_while_a_program_runs(local: LocalSandbox) -> None:
    async def go() -> int:
        call = asyncio.create_task(local.arun(Job("import time\ntime.sleep(0.5)")))
        turns = 0
        while not call.done():
            turns += 1
            await asyncio.sleep(0.01)
        return turns

    assert asyncio.run(go()) > 3


def test_cancelling_ends_the_program(look: Any) -> None:
    with LocalSandbox(workers=1, waiting=1) as sandbox:
        before = look.settled(sandbox)

        async def go() -> None:
            call = asyncio.create_task(sandbox.arun(SLEEP))
            await asyncio.to_thread(look.wait_for, lambda: look.footprint(sandbox).processes > before.processes)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

        asyncio.run(go())
        assert sandbox.run(Job("1")).value == "1"
        assert look.settled(sandbox) == before


def test_cancelling_a_call_in_the_queue_leaves_the_others(local: LocalSandbox) -> None:
    async def go() -> list[str | None]:
        calls = [asyncio.create_task(local.arun(Job(f"import time\ntime.sleep(0.1)\n{n}"))) for n in range(8)]
        await asyncio.sleep(0)
        for call in calls[::2]:
            call.cancel()
        done = await asyncio.gather(*calls, return_exceptions=True)
        return [outcome.value for outcome in done if not isinstance(outcome, BaseException)]

    assert asyncio.run(go()) == ["1", "3", "5", "7"]


def test_an_interrupt_in_run_ends_the_program(look: Any) -> None:
    code = (
        "import os, signal, threading\n"
        "from rstar2_env.sandbox import Job, Limits, LocalSandbox\n"
        "sandbox = LocalSandbox(workers=1)\n"
        "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try:\n    sandbox.run(Job('import time; time.sleep(60)', limits=Limits(wall_s=60)))\n"
        "except KeyboardInterrupt:\n    print('interrupted', sandbox.run(Job('1')).value)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "interrupted 1\n", done.stderr


def test_a_closed_sandbox_says_so_and_closing_twice_is_harmless() -> None:
    sandbox = make_sandbox("local", workers=1)
    sandbox.close()
    sandbox.close()
    with pytest.raises(SandboxUnavailableError, match="closed"):
        sandbox.run(Job("1"))


def test_closing_answers_the_calls_in_flight() -> None:
    sandbox = LocalSandbox(workers=1)
    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(sandbox.run, SLEEP) for _ in range(3)]
        threading.Timer(0.5, sandbox.close).start()
        assert [call.result(30).status for call in calls] == [ToolStatus.UNAVAILABLE] * 3


def test_closing_leaves_no_process_folder_or_control_group(look: Any) -> None:
    sandbox = LocalSandbox(workers=2)
    sandbox.run(Job("open('x', 'w').write('x')"))
    pids, scratch = look.pids(sandbox), look.scratch(sandbox)
    below = look.descendants(pids[0])
    assert below
    sandbox.close()
    look.wait_for(lambda: not any(look.alive(pid) for pid in (*pids, *below)))
    assert not os.path.exists(scratch)
    assert look.groups(pids[0]) == []


def test_when_the_caller_dies_everything_dies(look: Any) -> None:
    code = """
import sys
from rstar2_env.sandbox import LocalSandbox
c = LocalSandbox(workers=1)._connection
print(c.host.warden_pid, c.zygote_pid, c.host.scratch, flush=True)
sys.stdin.read()
"""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True) as caller:
        assert caller.stdout is not None
        warden, zygote, scratch = caller.stdout.readline().split()
        below = look.descendants(int(warden))
        assert int(zygote) in below
        caller.kill()
    look.wait_for(lambda: not any(look.alive(pid) for pid in (int(warden), *below)))
    look.wait_for(lambda: not os.path.exists(scratch))


@pytest.mark.slow
def test_what_was_left_by_a_process_that_was_killed_with_all_of_its_own_is_swept(look: Any) -> None:
    code = "import sys\nfrom rstar2_env.sandbox import LocalSandbox\nc = LocalSandbox(workers=1)._connection\n"
    code += "print(c.host.warden_pid, c.host.scratch, flush=True)\nsys.stdin.read()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True) as caller:
        assert caller.stdout is not None
        warden, scratch = caller.stdout.readline().split()
        os.kill(int(warden), signal.SIGSTOP)  # or it would tidy up
        caller.kill()
        os.kill(int(warden), signal.SIGKILL)
    look.wait_for(lambda: not look.alive(int(warden)))
    assert os.path.exists(scratch)
    with LocalSandbox(workers=1, preload=()) as sandbox:
        assert not os.path.exists(scratch)
        assert look.groups(int(warden)) == []
        assert os.path.exists(look.scratch(sandbox))


@pytest.mark.slow
def test_a_sandbox_that_was_never_closed_ends_with_its_process(look: Any) -> None:
    code = """
from rstar2_env.sandbox import LocalSandbox
c = LocalSandbox(workers=1)._connection
print(c.host.warden_pid, c.host.scratch)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    warden, scratch = done.stdout.split()
    assert not look.alive(int(warden))
    assert not os.path.exists(scratch)
    assert done.stderr == ""


def test_a_thread_that_made_it_may_end(look: Any) -> None:
    # The kernel's signal on a parent's death goes by threads, not by processes.
    made: list[LocalSandbox] = []
    thread = threading.Thread(target=lambda: made.append(LocalSandbox(workers=1)))
    thread.start()
    thread.join()
    with made[0] as sandbox:
        warden = look.pids(sandbox)[0]
        assert sandbox.run(Job("1")).value == "1"
        assert (look.pids(sandbox)[0], sandbox.run(Job("1")).attempts) == (warden, 1)


def test_pickled_it_is_its_options() -> None:
    options: dict[str, Any] = {"workers": 1, "preload": (), "limits": Limits(file_mb=7)}
    with LocalSandbox(**options) as sandbox, pickle.loads(pickle.dumps(sandbox)) as copy:
        assert copy.options == sandbox.options
        assert copy.run(Job("1")).value == "1"


def test_in_a_forked_process_it_says_that_it_belongs_to_another(local: LocalSandbox) -> None:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            local.run(Job("1"))
        except SandboxUnavailableError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(write)
    with os.fdopen(read) as file:
        assert "fork" in file.read()
    assert local.run(Job("1")).value == "1"


def test_a_job_too_large_for_a_socket_buffer_goes_through_beside_small_ones(local: LocalSandbox) -> None:
    large = Job("len(input())", stdin="x" * (20 << 20))
    outcomes = local.run_many([Job("1"), large, Job("2"), large, Job("3")])
    assert [outcome.value for outcome in outcomes] == ["1", str(20 << 20), "2", str(20 << 20), "3"]


def test_a_large_cell_and_the_next_one_of_its_session_run_in_order(local: LocalSandbox) -> None:
    cells = [
        Job("import sys\nsize = len(sys.stdin.read())\nsize", stdin="x" * (24 << 20), session="large"),
        Job("size + 1", session="large"),
    ]
    assert [outcome.value for outcome in local.run_many(cells)] == [str(24 << 20), str((24 << 20) + 1)]
    local.end_session("large")


def test_a_call_that_is_cancelled_while_its_input_is_sent_does_not_run() -> None:
    """A cancellation that arrived before its call would be ignored, and the program would keep the only worker."""
    program = "import sys, time\nsys.stdin.read()\ntime.sleep(300)"
    with LocalSandbox(workers=1) as sandbox:
        call = sandbox._submit(Job(program, stdin="x" * (24 << 20), limits=Limits(wall_s=400)))
        call.drop()
        wait_for(lambda: not sandbox._connection._out)  # all of its input is sent
        assert sandbox._submit(Job("1")).future.result(60).value == "1"
