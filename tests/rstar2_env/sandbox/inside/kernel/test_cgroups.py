"""Control groups of version 2, in a folder that acts as the kernel's tree: this needs no machine that has one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rstar2_env.sandbox.inside.folder_lock import lock_folder
from rstar2_env.sandbox.inside.kernel import cgroups
from rstar2_env.sandbox.inside.kernel.cgroups import ControlGroups

FILES = {
    "cgroup.controllers": "cpu memory pids\n",
    "cgroup.subtree_control": "",
    "cgroup.procs": "",
    "memory.max": "max\n",
    "memory.swap.max": "max\n",
    "memory.oom.group": "0\n",
    "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n",
    "pids.max": "max\n",
    "cpu.weight": "100\n",
}


class Tree:
    """A mounted tree, and the group of this process in it.

    Args:
        mount: Its folder.
        monkeypatch: Replaces what this process reads about its machine, and lets new folders have the kernel's files.
    """

    def __init__(self, mount: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.mount = mount
        self._mkdir = os.mkdir
        self.group("")
        monkeypatch.setattr(cgroups, "mounts", lambda: [("cgroup", "/elsewhere"), ("cgroup2", str(mount))])
        monkeypatch.setattr(cgroups, "own_groups", lambda: ["1:name=systemd:/", "0::/user.slice/session/own"])
        monkeypatch.setattr(cgroups, "_ROOT", str(mount / "no version 1"))
        monkeypatch.setattr(os, "mkdir", self._made)

    def group(self, path: str, **files: str) -> Path:
        """Make a group; ``files`` are those that differ from a new group's, with ``_`` for the dot."""
        folder = self.mount / path
        if path:
            self._made(str(folder))
        else:
            self._mkdir(folder)
        given = {name.replace("_", ".", 1): text for name, text in files.items()}
        for name, text in (FILES | given).items():
            (folder / name).write_text(text)
        return folder

    def _made(self, folder: str, mode: int = 0o777) -> None:
        self._mkdir(folder, mode)
        for name, text in FILES.items():
            (Path(folder) / name).write_text(text)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """The tree of a machine that delegates ``user.slice/session`` to its user."""
    made = Tree(tmp_path / "cgroup", monkeypatch)
    made.group("user.slice")
    made.group("user.slice/session", cgroup_subtree_control="memory pids\n")
    made.group("user.slice/session/own")
    return made


def test_the_nearest_delegated_group_holds_those_of_the_warden(tree: Tree) -> None:
    groups = ControlGroups()
    own = tree.mount / f"user.slice/session/rstar2-sandbox-{os.getpid()}"
    assert (groups.version, groups.controllers) == (2, ("memory", "pids"))
    assert (own / "cgroup.subtree_control").read_text() == "+memory +pids"
    groups.make(3)
    assert (own / "call-3").is_dir()
    assert groups.unified == str(own)


@pytest.mark.parametrize(
    "lacking", [{"cgroup_controllers": "cpu memory\n"}, {"cgroup_subtree_control": "pids\n"}], ids=["offered", "on"]
)
def test_without_both_controllers_there_is_none_and_the_reason_is_told(tree: Tree, lacking: dict[str, str]) -> None:
    tree.group("user.slice/none", **lacking)
    for name, text in lacking.items():
        for folder in ("user.slice/session", "user.slice", ""):
            (tree.mount / folder / name.replace("_", ".", 1)).write_text(text)
    with pytest.raises(OSError, match="may not create version 1 control groups"):
        ControlGroups()


def test_the_limits_of_a_call_are_written_and_its_memory_is_not_swapped(tree: Tree) -> None:
    group = ControlGroups().make(0)
    folder = tree.mount / f"user.slice/session/rstar2-sandbox-{os.getpid()}/call-0"
    group.prepare(100 << 20, 7)
    assert (folder / "memory.max").read_text() == str((100 << 20) + (32 << 20))
    assert (folder / "pids.max").read_text() == "7"
    assert (folder / "memory.swap.max").read_text() == "0"
    assert (folder / "memory.oom.group").read_text() == "1"
    (entrance,) = group.entrances
    os.write(entrance, b"0")
    assert (folder / "cgroup.procs").read_text() == "0"


def test_calls_share_the_cores_equally_and_a_lowered_one_has_a_quarter_until_the_next(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    groups = ControlGroups()
    own = tree.mount / f"user.slice/session/rstar2-sandbox-{os.getpid()}"
    assert groups.share_cores() == ""
    assert groups.controllers == ("memory", "pids", "cpu")
    assert (own / "cgroup.subtree_control").read_text() == "+cpu"
    assert (own / "cpu.weight").read_text() == "800", "one share for each core"
    group = groups.make(0)
    assert len(group.entrances) == 1
    weight = own / "call-0/cpu.weight"
    group.lower()
    assert weight.read_text() == "25"
    group.prepare(1 << 20, 1)
    assert weight.read_text() == "100"


def test_why_calls_have_no_share_of_the_cores_is_told(tree: Tree) -> None:
    groups = ControlGroups()
    control = tree.mount / f"user.slice/session/rstar2-sandbox-{os.getpid()}/cgroup.subtree_control"
    control.unlink()
    control.mkdir()
    assert groups.share_cores().startswith("the cpu controller is not available: ")
    assert groups.controllers == ("memory", "pids")
    groups.make(0).lower()  # changes nothing


def test_a_kill_for_memory_counts_for_its_own_call_alone(tree: Tree) -> None:
    group = ControlGroups().make(0)
    events = tree.mount / f"user.slice/session/rstar2-sandbox-{os.getpid()}/call-0/memory.events"
    group.prepare(1 << 20, 1)
    assert not group.out_of_memory()
    events.write_text("low 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 1\n")
    assert group.out_of_memory()
    group.prepare(1 << 20, 1)
    assert not group.out_of_memory()


def test_groups_of_killed_wardens_are_removed_and_those_of_living_ones_stay(tree: Tree) -> None:
    session = tree.mount / "user.slice/session"
    for name in ("rstar2-sandbox-dead", "rstar2-sandbox-dead/call-0", "rstar2-sandbox-alive", "other"):
        tree.group(f"user.slice/session/{name}")
    for file in (session / "rstar2-sandbox-dead").rglob("*.*"):  # a group's files do not keep it from being removed
        file.unlink()
    held = lock_folder(str(session / "rstar2-sandbox-alive"))
    ControlGroups()
    os.close(held)
    left = {path.name for path in session.iterdir() if path.is_dir()}
    assert left == {"own", "other", "rstar2-sandbox-alive", f"rstar2-sandbox-{os.getpid()}"}
