"""Options are checked where they are given."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from rstar2_env.core.cores import usable_cores
from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError
from rstar2_env.sandbox import LocalOptions, LocalSandbox
from rstar2_env.sandbox.inside.kernel import linux
from rstar2_env.sandbox.options import site_dirs


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("isolation", "strictly"),
        ("preload", "numpy"),
        ("preload", [1]),
        ("readable", "/usr"),
        ("readable", ["/no/such/folder"]),
        ("readable", ["/tmp"]),
        ("root_folders", ["usr"]),
        ("root_folders", ["a/b"]),
        ("without", ["network"]),
        ("workers", 0),
        ("waiting", 0),
        ("workers", 1.5),
        ("retries", -1),
        ("stall_timeout_s", 0),
    ],
)
def test_a_wrong_value_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=name):
        LocalOptions(**{name: value})


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"worker.*workers"):
        LocalSandbox(worker=3)


def test_there_are_as_many_workers_as_cores() -> None:
    assert LocalOptions().slots == usable_cores()
    assert LocalOptions(workers=7).slots == 7


def test_only_folders_of_installed_packages_are_shown(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "lib" / "site-packages"
    site.mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(site), "", str(tmp_path / "missing" / "site-packages")])
    assert site_dirs() == [str(site)]


def test_a_module_that_cannot_be_preloaded_is_named() -> None:
    with pytest.raises(SandboxUnavailableError, match="no_such_module"):
        LocalSandbox(preload=("no_such_module",))


def test_another_system_is_told_what_it_cannot_isolate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux, "IS_LINUX", False)
    with pytest.raises(SandboxUnavailableError, match="docker or remote"):
        LocalSandbox()


def test_importing_the_sandbox_loads_nothing_heavy() -> None:
    import subprocess

    code = "import sys, rstar2_env.sandbox; print([m for m in ('sympy', 'torch', 'typer', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
