"""Autogroup counts as active only if its setting is 1 and programs are in the root group of the cpu controller."""

from __future__ import annotations

from pathlib import Path

import pytest

from rstar2_env.sandbox.inside.kernel import autogroup, cgroups, layers
from rstar2_env.sandbox.inside.kernel.packages import EVERYTHING
from rstar2_env.sandbox.options import LAYERS


class Machine:
    """The files from which the state of autogroup is read, in a folder.

    Args:
        folder: The folder.
        monkeypatch: Replaces the places from which this process reads.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.setting = folder / "sched_autogroup_enabled"
        self.root = folder / "cgroup"
        self.root.mkdir()
        self._patch = monkeypatch
        self.set("1\n")
        monkeypatch.setattr(autogroup, "_SETTING", str(self.setting))
        monkeypatch.setattr(cgroups, "_ROOT", str(self.root))
        self.mount()

    def set(self, text: str) -> None:
        """Write the setting."""
        self.setting.write_text(text)

    def mount(self, *folders: Path) -> None:
        """Mount version 2 at these folders."""
        mounted = [("cgroup2", str(folder)) for folder in folders]
        self._patch.setattr(cgroups, "mounts", lambda: [("cgroup", "/elsewhere"), *mounted])

    def belong(self, *lines: str) -> None:
        """Be in these control groups."""
        self._patch.setattr(cgroups, "own_groups", lambda: list(lines))

    def group(self, path: str, *files: str) -> Path:
        """Make a control group with these files."""
        folder = self.root / path
        folder.mkdir(parents=True, exist_ok=True)
        for name in files:
            (folder / name).touch()
        return folder


CPU_GROUP = "control group of the cpu controller"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine whose autogroup acts, with version 1 of control groups."""
    made = Machine(tmp_path, monkeypatch)
    made.group("cpu", "release_agent")
    made.belong("2:memory:/", "1:cpu:/", "0::/")
    return made


@pytest.fixture
def unified(machine: Machine) -> Machine:
    """The same with version 2, without the cpu controller in any group."""
    machine.mount(machine.group("."))
    machine.group("user.slice", "cgroup.events")
    machine.group("user.slice/own", "cgroup.events")
    machine.belong("0::/user.slice/own")
    return machine


def test_autogroup_acts_on_processes_in_the_root_group(machine: Machine) -> None:
    assert autogroup.why_inactive() == ""


@pytest.mark.parametrize("setting", ["0\n", "2\n", ""])
def test_the_setting_is_named_if_it_is_not_1(machine: Machine, setting: str) -> None:
    machine.set(setting)
    assert "kernel.sched_autogroup_enabled" in autogroup.why_inactive()


def test_a_kernel_without_the_setting_does_not_have_autogroup(machine: Machine) -> None:
    machine.setting.unlink()
    assert "does not have autogroup" in autogroup.why_inactive()


@pytest.mark.parametrize("names", ["cpu", "cpu,cpuacct"])
def test_a_group_of_version_1_is_found_with_its_controllers(machine: Machine, names: str) -> None:
    machine.group(names, "release_agent")
    machine.group(f"{names}/own", "cpu.shares")
    machine.belong(f"1:{names}:/own", "0::/")
    assert CPU_GROUP in autogroup.why_inactive()
    machine.belong(f"1:{names}:/", "0::/")
    assert autogroup.why_inactive() == ""


def test_a_container_sees_its_own_group_of_version_1_at_the_mount(machine: Machine) -> None:
    (machine.root / "cpu" / "release_agent").unlink()
    machine.belong("1:cpu:/docker/0123", "0::/")
    assert CPU_GROUP in autogroup.why_inactive()


def test_another_controllers_group_of_version_1_does_not_matter(machine: Machine) -> None:
    machine.group("cpuset/own")
    machine.belong("3:cpuset:/own", "1:cpu:/", "0::/")
    assert autogroup.why_inactive() == ""


def test_groups_of_version_2_without_the_cpu_controller_are_the_root_group_of_it(unified: Machine) -> None:
    assert autogroup.why_inactive() == ""


@pytest.mark.parametrize("where", ["user.slice", "user.slice/own"])
def test_a_group_of_version_2_or_one_above_has_the_cpu_controller(unified: Machine, where: str) -> None:
    unified.group(where, "cpu.weight")
    assert CPU_GROUP in autogroup.why_inactive()


def test_programs_may_run_in_another_group_than_this_process(unified: Machine) -> None:
    assert autogroup.why_inactive(str(unified.group("user.slice/calls", "cgroup.events"))) == ""
    assert CPU_GROUP in autogroup.why_inactive(str(unified.group("user.slice/calls", "cpu.weight")))


def test_a_container_that_hides_the_groups_above_its_own_is_not_trusted(unified: Machine) -> None:
    unified.group(".", "cgroup.events")
    assert CPU_GROUP in autogroup.why_inactive()


@pytest.mark.parametrize("path", ["/user.slice/hidden", "/..", "/../other"])
def test_a_group_of_version_2_that_cannot_be_seen_is_not_trusted(unified: Machine, path: str) -> None:
    unified.belong(f"0::{path}")
    assert CPU_GROUP in autogroup.why_inactive()


def test_without_a_mount_of_version_2_nothing_is_known(unified: Machine) -> None:
    unified.mount()
    assert CPU_GROUP in autogroup.why_inactive()


def test_the_reason_is_the_detail_of_the_bound(machine: Machine, tmp_path: Path) -> None:
    without = [name for name in LAYERS if name not in ("seccomp", "autogroup")]
    options = {"isolation": "best", "without": without, "packages": [EVERYTHING], "site_dirs": [], "readable": []}

    def bound() -> dict[str, object]:
        found = layers.find({**options, "scratch": str(tmp_path)}).capabilities()
        return next(layer for layer in found if layer["name"] == "one share of the cores")

    assert bound()["active"]
    machine.set("0\n")
    assert not bound()["active"]
    assert str(bound()["detail"]).startswith("autogroup: kernel.sched_autogroup_enabled is not 1")
