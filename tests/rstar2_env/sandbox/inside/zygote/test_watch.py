"""A watch names the bound that a tree has passed, and counts what its processes and files really hold."""

from __future__ import annotations

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
    assert Watch(**{"tasks": 0, "memory": 0, "files": 0, **bounds}, workdir="/nowhere").overdrawn([tree]) == passed


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
