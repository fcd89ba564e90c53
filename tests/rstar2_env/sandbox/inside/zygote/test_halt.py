"""A process tree is halted and resumed completely, and a failure to halt it is reported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from waiting import wait_for

from rstar2_env.sandbox.inside.zygote import halt
from rstar2_env.sandbox.inside.zygote.halt import TreeHalt
from rstar2_env.sandbox.inside.zygote.watch import descendants

TREE = """
import os
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        break
print(end="x", flush=True)
while True: pass
"""
WAKER = "import os, sys\nwhile True: os.kill(int(sys.argv[1]), 18)"


@pytest.fixture
def tree() -> Iterator[int]:
    """A process and two children, each in its own session, all busy."""
    with subprocess.Popen([sys.executable, "-c", TREE], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(3) == b"xxx"
        yield process.pid
        for pid in descendants([process.pid]):
            os.kill(pid, signal.SIGKILL)


@contextmanager
def killed(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Kill a process at the end, also if the test fails."""
    try:
        yield
    finally:
        process.kill()


def cpu_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:13]))


def test_no_process_of_a_halted_tree_gets_any_time_until_it_goes_on(tree: int) -> None:
    pids = descendants([tree])
    assert len(pids) == 3
    halted = TreeHalt(tree, 0)
    assert halted.sweep()
    wait_for(halted.is_stopped)
    before = [cpu_of(pid) for pid in pids]
    with subprocess.Popen([sys.executable, "-c", "sum(range(10_000_000))"]) as busy:
        busy.wait()
    assert [cpu_of(pid) for pid in pids] == before
    halted.undo()
    wait_for(lambda: all(cpu_of(pid) > was for pid, was in zip(pids, before, strict=True)))


HEADLESS = """
import ctypes, os, platform, threading
def spin():
    print(end="x", flush=True)
    while True: pass
threading.Thread(target=spin, daemon=True).start()
ctypes.CDLL(None).syscall(60 if platform.machine() == "x86_64" else 93, 0)
"""


def test_a_process_whose_first_thread_has_ended_is_halted_too() -> None:
    with subprocess.Popen([sys.executable, "-c", HEADLESS], stdout=subprocess.PIPE) as process, killed(process):
        assert process.stdout is not None
        assert process.stdout.read(1) == b"x"
        wait_for(lambda: halt._state(process.pid, process.pid) == b"Z")
        (spinning,) = [task for task in descendants([process.pid])[process.pid] if int(task) != process.pid]
        halted = TreeHalt(process.pid, 0)
        assert not halted.is_stopped()
        wait_for(lambda: halted.sweep() and halted.is_stopped())
        assert halt._state(process.pid, spinning) == b"T"
        halted.undo()
        wait_for(lambda: halt._state(process.pid, spinning) == b"R")


def test_what_was_stopped_by_the_program_itself_is_not_woken(tree: int) -> None:
    own = next(pid for pid in descendants([tree]) if pid != tree)
    os.kill(own, signal.SIGSTOP)
    wait_for(lambda: halt._state(own, own) == b"T")
    halted = TreeHalt(tree, 0)
    wait_for(lambda: halted.sweep() and halted.is_stopped())
    halted.undo()
    wait_for(lambda: halt._state(tree, tree) == b"R")
    assert halt._state(own, own) == b"T"


def test_a_tree_that_is_woken_again_and_again_is_given_up(tree: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halt, "MOST_SWEEPS", 3)
    monkeypatch.setattr(halt, "_state", lambda pid, task: b"R")
    halted = TreeHalt(tree, 0)
    assert [halted.sweep() for _ in range(4)] == [True, True, True, False]
    assert not halted.is_stopped()
