"""A watch reports the limit that a tree exceeds, and measures its processes and files correctly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rstar2_env.sandbox.inside.zygote import watch
from rstar2_env.sandbox.inside.zygote.watch import Watch, descendants

TREE = """
import os, sys, threading
held = bytearray(os.urandom(64 << 20))
threading.Thread(target=sys.stdin.read, daemon=True).start()
if os.fork() == 0:
    os.read(0, 1)
    os._exit(0)
print("ready", flush=True)
os.read(0, 1)
"""


@pytest.fixture(scope="module")
def tree() -> Iterator[int]:
    """A process of two threads that holds 64 MiB, which a child shares."""
    with subprocess.Popen([sys.executable, "-c", TREE], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        process.kill()


def test_a_tree_is_its_root_and_all_below_with_their_tasks(tree: int) -> None:
    found = descendants([tree])
    assert len(found) == 2
    assert [len(tasks) for pid, tasks in sorted(found.items(), key=lambda one: one[0] != tree)] == [2, 1]


HEADLESS = """
import ctypes, os, platform, threading, time
def hold():
    held = bytearray(os.urandom(64 << 20))
    file = os.open("held", os.O_RDWR | os.O_CREAT)
    os.write(file, bytes(1 << 20))
    os.unlink("held")
    pipes = [os.pipe() for _ in range(20)]
    time.sleep(0.2)  # until the first thread has ended
    os.write(1, b"ready")
    os.close(1)
    os.read(0, 1)
    os._exit(0)
threading.Thread(target=hold, daemon=True).start()
ctypes.CDLL(None).syscall(60 if platform.machine() == "x86_64" else 93, 0)
"""


@pytest.mark.parametrize(
    ("bounds", "passed"),
    [
        ({"memory": 32 << 20}, "memory"),
        ({"memory": 512 << 20}, None),
        ({"files": 1 << 19}, "files"),
        ({"files": 2 << 20}, None),
        ({"pipes": 20}, "pipes"),
        ({"pipes": 21}, None),  # with its standard input
    ],
)
def test_what_a_process_holds_is_counted_after_its_first_thread_has_ended(
    tmp_path: Path, bounds: dict[str, int], passed: str | None
) -> None:
    bounded = Watch(**{"tasks": 0, "memory": 0, "files": 0, **bounds}, workdir="/none")
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", HEADLESS], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b"ready"  # until it has closed its end: an open one counts as a pipe
        assert bounded.overdrawn([process.pid]) == passed
        process.kill()


def test_a_process_that_is_gone_is_no_tree() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert descendants([process.pid]) == {}


@pytest.mark.parametrize(
    ("bounds", "passed"),
    [
        ({"tasks": 2}, "processes"),
        ({"tasks": 3}, None),
        ({"memory": 48 << 20}, "memory"),
        # The child shares what its parent holds: counted whole it would be 128 MiB.
        ({"memory": 112 << 20}, None),
        ({}, None),
    ],
)
def test_the_bound_that_was_passed_is_named(tree: int, bounds: dict[str, int], passed: str | None) -> None:
    bounded = Watch(**{"tasks": 0, "memory": 0, "files": 0, **bounds}, workdir="/nowhere")
    # On a busy machine one check may have time for one process alone.
    assert passed in {bounded.overdrawn([tree]) for _ in range(2)}
    assert {bounded.overdrawn([tree]) for _ in range(4)} <= {passed, None}


def test_files_count_by_what_they_take_and_not_by_what_they_say(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "full").write_bytes(b"x" * (1 << 20))
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(1 << 30)
    (tmp_path / "link").symlink_to("/")
    assert Watch(0, 0, 2 << 20, str(tmp_path)).overdrawn([]) is None
    assert Watch(0, 0, 1 << 19, str(tmp_path)).overdrawn([]) == "files"


def test_too_many_files_are_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MOST_FILES", 3)
    for number in range(4):
        assert Watch(0, 0, 1 << 30, str(tmp_path)).overdrawn([]) is None
        (tmp_path / str(number)).touch()
    assert Watch(0, 0, 1 << 30, str(tmp_path)).overdrawn([]) == "files"


NAMELESS = """
import mmap, os, sys
os.chdir(sys.argv[2])
held = os.open("held", os.O_RDWR | os.O_CREAT)
os.write(held, bytes(1 << 20))
os.unlink("held")
if sys.argv[1] == "mapped":
    import ctypes
    ctypes.CDLL(None).mmap(None, ctypes.c_size_t(4096), 1, 1, held, ctypes.c_long(0))
    os.close(held)
stdin = os.memfd_create("stdin")
os.write(stdin, bytes(8 << 20))
shared = mmap.mmap(-1, 8 << 20)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(("how", "most", "passed"), [("open", 2, None), ("open", 0.5, "files"), ("mapped", 2, "files")])
def test_files_without_a_name_count_while_they_are_held(
    tmp_path: Path, how: str, most: float, passed: str | None
) -> None:
    command = [sys.executable, "-c", NAMELESS, how, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert Watch(0, 0, int(most * (1 << 20)), str(tmp_path)).overdrawn([process.pid]) == passed
        process.kill()


SOCKETS = """
import socket, sys
kept = [socket.socketpair() for _ in range(20)]
print("ready", flush=True)
sys.stdin.read()
"""


PIPES = """
import os, sys
kept = [os.pipe() for _ in range(20)]
if os.fork() == 0:  # which shares them
    kept.append(os.pipe())
    print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(("most", "passed"), [(22, "pipes"), (23, None)])
def test_each_pipe_of_a_tree_counts_once(most: int, passed: str | None) -> None:
    with subprocess.Popen([sys.executable, "-c", PIPES], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        bounded = Watch(0, 0, 0, "/nowhere", pipes=most)
        # On a busy machine one check may have time for one process alone.
        assert passed in {bounded.overdrawn([process.pid]) for _ in range(2)}
        assert {bounded.overdrawn([process.pid]) for _ in range(4)} <= {passed, None}
        for pid in descendants([process.pid]):
            os.kill(pid, signal.SIGKILL)


def test_what_the_kernel_may_hold_for_sockets_counts_as_memory() -> None:
    with subprocess.Popen([sys.executable, "-c", SOCKETS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        bounds = [int(40 * (320 << 10) * share) for share in (0.9, 10)]
        assert [Watch(0, bound, 0, "/").overdrawn([process.pid]) for bound in bounds] == ["memory", None]
        process.kill()


def test_a_check_reads_for_a_bounded_time_and_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_BUDGET_S", -1.0)
    read: list[int] = []

    def slow(pid: int) -> dict[int, int]:
        read.append(pid)
        return {pid: 10}

    tally = watch._TreeSum(slow)
    assert [tally.total([1, 2, 3]) for _ in range(4)] == [10, 20, 30, 10]
    assert read == [1, 2, 3, 1]
