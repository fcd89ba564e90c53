"""A process tree is lowered completely, with new processes; only waiting for other programs counts as waiting."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import wait_for

from rstar2_env.sandbox.inside.zygote import priority
from rstar2_env.sandbox.inside.zygote.priority import LEVEL, LoweredTree
from rstar2_env.sandbox.inside.zygote.watch import descendants

LOWERED_TO = min(os.getpriority(os.PRIO_PROCESS, 0) + LEVEL, 19)

TREE = """
import os, sys, threading
os.setsid()
def work():
    while True: pass
threading.Thread(target=work, daemon=True).start()
if os.fork() == 0:
    os.setsid()
    os.nice(int(sys.argv[1]))
    print(end="x", flush=True)
    work()
print(end="x", flush=True)
while sys.stdin.read(1):
    if os.fork() == 0:
        work()
"""
PAUSING = """
import subprocess, sys
tree = subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
tree.stdout.read(2)
print(tree.pid, flush=True)
sys.stdin.read()
"""
"""A process that never runs and stays in the session of its parent, with a tree below it."""
BUSY = """
import os, sys
os.setsid()
os.sched_setaffinity(0, {int(sys.argv[1])})
print(end="x", flush=True)
while True: pass
"""


def started(code: str, argument: int, words: int) -> subprocess.Popen[bytes]:
    """Start a program and wait for a number of letters of its output."""
    command = [sys.executable, "-c", code, str(argument)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.read(words) == b"x" * words
    return process


def ended(process: subprocess.Popen[bytes]) -> None:
    for pid in descendants([process.pid]):
        os.kill(pid, signal.SIGKILL)
    process.communicate()


@pytest.fixture(params=[0, LEVEL + 2])
def tree(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    """A process with two threads and a child in its own session, which may have lowered itself."""
    process = started(TREE, request.param, 2)
    yield process
    ended(process)


def levels(pid: int) -> list[int]:
    """Nice values of all tasks of a tree."""
    found = [int(task) for tasks in descendants([pid]).values() for task in tasks]
    return sorted(os.getpriority(os.PRIO_PROCESS, task) for task in found)


def session_level(pid: int) -> int | None:
    """Nice value of a session, if the kernel supports it."""
    path = Path(f"/proc/{pid}/autogroup")
    text = path.read_text() if path.exists() else ""
    return int(text.split()[-1]) if text else None


def test_every_task_of_a_tree_is_lowered_and_none_is_raised(tree: subprocess.Popen[bytes]) -> None:
    before = levels(tree.pid)
    assert len(before) == 3
    assert LoweredTree(tree.pid, 0).lower()
    assert levels(tree.pid) == [max(LOWERED_TO, each) for each in before]
    assert {session_level(pid) for pid in descendants([tree.pid])} <= {LEVEL, None}


def test_what_is_started_later_is_as_low(tree: subprocess.Popen[bytes]) -> None:
    assert LoweredTree(tree.pid, 0).lower()
    assert tree.stdin is not None
    tree.stdin.write(b"1")
    tree.stdin.flush()
    wait_for(lambda: len(levels(tree.pid)) == 4)
    assert min(levels(tree.pid)) == LOWERED_TO


@pytest.mark.parametrize("nice", [0, LEVEL + 2])
def test_the_pausing_process_keeps_its_weight_as_it_is_in_the_session_of_the_parent(nice: int) -> None:
    command = [sys.executable, "-c", PAUSING, TREE, str(nice)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as pausing:
        assert pausing.stdout is not None
        main = int(pausing.stdout.readline())
        try:
            before = session_level(pausing.pid), os.getpriority(os.PRIO_PROCESS, pausing.pid)
            way = LoweredTree(main, pausing.pid)
            assert pausing.pid not in way._tree()
            assert way.lower()
            assert (session_level(pausing.pid), os.getpriority(os.PRIO_PROCESS, pausing.pid)) == before
            assert min(levels(main)) == LOWERED_TO
        finally:
            for pid in descendants([main]):
                os.kill(pid, signal.SIGKILL)
            pausing.communicate()


def test_a_tree_is_lowered_only_if_that_is_possible_and_waiting_is_measured(
    tree: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError

    before = levels(tree.pid)
    with monkeypatch.context() as broken:
        broken.setattr(priority, "_waited", lambda tree: {})
        assert not LoweredTree(tree.pid, 0).lower()
    assert levels(tree.pid) == before
    with monkeypatch.context() as broken:
        broken.setattr(os, "setpriority", refuse)
        assert not LoweredTree(tree.pid, 0).lower()
    assert levels(tree.pid) == before


def test_a_tree_that_is_never_found_completely_is_not_lowered(
    tree: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpriority", lambda which, task: 0)  # there is always one that was not lowered
    assert not LoweredTree(tree.pid, 0).lower()


def test_a_program_waits_for_another_on_its_core() -> None:
    core = min(os.sched_getaffinity(0))
    processes = [started(BUSY, core, 1) for _ in range(2)]
    try:
        way = LoweredTree(processes[0].pid, 0)
        assert way.lower()
        wait_for(lambda: way.waited_s() > 0.2)
    finally:
        for process in processes:
            ended(process)


@pytest.mark.parametrize(
    ("waited", "spent", "elapsed", "held_back"),
    [
        (1.5, 0.5, 2.0, 1.5),  # one task that ran whenever it had a core
        (0.2, 0.5, 2.0, 0.2),  # the same, and it slept
        (1.0, 2.0, 2.0, 0.0),  # two on one core: one of them always ran
        (1.9, 4.0, 2.0, 0.0),  # many on several cores
        (1.5, 1.0, 2.0, 1.0),  # two on one core, which others had for half of the time
    ],
)
def test_waiting_of_tasks_for_one_another_does_not_count(
    waited: float, spent: float, elapsed: float, held_back: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, tasks, cpu = [50.0], {"1": 3.0, "2": 0.1}, [7.0]
    monkeypatch.setattr(priority, "descendants", lambda roots: {1: ["1", "2"]})
    monkeypatch.setattr(priority, "_waited", lambda tree: dict(tasks))
    monkeypatch.setattr(priority, "_spent", lambda tree: cpu[0])
    monkeypatch.setattr(priority.time, "monotonic", lambda: now[0])
    way = LoweredTree(1, 0)
    now[0] += elapsed
    tasks["1"] += waited
    cpu[0] += spent
    assert way.waited_s() == pytest.approx(held_back)
