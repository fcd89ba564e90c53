"""Packages that the image of a task installs: those of this machine are there for its programs, others are refused."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from harbor_tasks import write_task

from rstar2_env.adapters.harbor import HarborEnv, read_task
from rstar2_env.adapters.harbor import packages as harbor_packages
from rstar2_env.adapters.harbor.packages import python_packages
from rstar2_env.adapters.harbor.shell import _programs
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.sandbox import LocalSandbox
from rstar2_env.sandbox.job import Job

HERE = "python3 -c 'import pygments, numpy; print(pygments.__name__, numpy.__name__)'"


def image(*lines: str) -> dict[str, str | None]:
    return {"environment/Dockerfile": "\n".join(["FROM python:3.12-slim", "WORKDIR /app", *lines, ""])}


@pytest.fixture
def dpkg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A database of dpkg with one installed package and a removed one."""
    status = tmp_path / "status"
    status.write_text(
        "Package: git\nStatus: install ok installed\nVersion: 1:2.39.5-0\nDescription: x\n more\n\n"
        "Package: jq\nStatus: deinstall ok config-files\nVersion: 1.6-2\n"
    )
    monkeypatch.setattr(harbor_packages, "_DPKG", status)
    harbor_packages._debian_packages.cache_clear()
    yield
    harbor_packages._debian_packages.cache_clear()


def find_none(path: str) -> Path | None:
    return None


def test_the_packages_of_a_task_are_there_for_commands_and_tests(tmp_path: Path) -> None:
    task = write_task(
        tmp_path / "task",
        {
            **image("RUN pip install --no-cache-dir pygments numpy"),
            "tests/test.sh": (
                "set -e\npython -c 'import pygments'\npygmentize -V > /app/said.txt\n"
                "echo 1 > /logs/verifier/reward.txt\n"
            ),
        },
    )
    assert read_task(task).packages == ("pygments", "numpy")
    env = HarborEnv(tasks=task)
    env.reset(seed=0)
    shown = env.step(env.dialect.format_call("bash", {"command": f"{HERE}; pygmentize -V; python3 -V"}))[0]
    _, reward, _, _, info = env.step("The task is done.")
    env.close()
    assert "pygments numpy" in shown
    assert f"Pygments version {version('pygments')}" in shown
    assert f"Python {sys.version.split()[0]}" in shown
    assert float(reward) == 1.0, info


def test_commands_of_the_image_run_programs_that_an_earlier_line_installed(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", image("RUN pip install numpy", "RUN numpy-config --version > version.txt"))
    env = HarborEnv(tasks=task)
    env.reset(seed=0)
    shown = env.step(env.dialect.format_call("bash", {"command": "cat version.txt"}))[0]
    env.close()
    assert f"{version('numpy')}\n" in shown
    early = write_task(tmp_path / "early", image("RUN numpy-config --version", "RUN pip install numpy"))
    with pytest.raises(ConfigurationError, match="line 3: the program numpy-config is not installed"):
        read_task(early)


def test_the_modules_of_a_task_come_before_the_packages(tmp_path: Path) -> None:
    lines = image("ENV PYTHONPATH=/app/own", "COPY pygments.py own/", "RUN pip install pygments numpy")
    env = HarborEnv(tasks=write_task(tmp_path / "task", {**lines, "environment/pygments.py": ""}))
    env.reset(seed=0)
    shown = env.step(
        env.dialect.format_call("bash", {"command": "python -c 'import numpy, pygments; print(pygments.__file__)'"})
    )[0]
    env.close()
    assert "/app/own/pygments.py" in shown


def test_an_interpreter_and_packages_below_a_folder_with_a_space_and_a_quote_are_found(tmp_path: Path) -> None:
    task = read_task(write_task(tmp_path / "task", image("RUN pip install pygments")))
    code = f"""
import os, subprocess, sys
folder = "/tmp/a b's/site-packages"
os.makedirs(folder)
with open(folder + "/mine.py", "w") as file:
    file.write("said = 'found'")
os.symlink(sys.executable, "/tmp/a b's/python")
sys.executable = "/tmp/a b's/python"
sys.path.append(folder)
{_programs(task)}
print(subprocess.check_output(["python", "-c", "import mine; print(mine.said)"], text=True))
"""
    with LocalSandbox(workers=1, preload=(), packages=task.packages, root_folders=("app",)) as sandbox:
        assert sandbox.run(Job(code)).stdout.strip() == "found"


def test_packages_that_no_task_installs_stay_hidden(tmp_path: Path) -> None:
    env = HarborEnv(tasks=write_task(tmp_path / "task"))
    env.reset(seed=0)
    shown = env.step(env.dialect.format_call("bash", {"command": "python3 -c 'import pygments'"}))[0]
    env.close()
    assert "No module named 'pygments'" in shown


@pytest.mark.usefixtures("dpkg")
@pytest.mark.parametrize(
    ("run", "names"),
    [
        ("apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*", []),
        ("DEBIAN_FRONTEND=noninteractive apt install -y -o Dpkg::Use-Pty=0 git=1:2.39*", []),
        ("apt-get install git && ln -sf /usr/bin/python3 /usr/bin/python && rm -rf /var/lib/apt/lists/*", []),
        ("set -ex; apt-get -qq update ; apt-get clean", []),
        ("apt-get -qqyoDpkg::Use-Pty=0 --target-release=stable install git", []),
        ("pip install -qUi http://a.b/simple --timeout 9 --retries=2 pygments", ["pygments"]),
        ("pip install pygments", ["pygments"]),
        ("pip3 install -U 'pygments>=2,<99' -i http://a.b/simple pip setuptools", ["pygments"]),
        ("python3 -m pip install 'Pygments[plugins]' && apt-get install git", ["Pygments"]),
        ("uv pip install --system numpy~=" + version("numpy").rpartition(".")[0] + ".0", ["numpy"]),
        (f"pip install numpy=={version('numpy')}", ["numpy"]),
    ],
)
def test_lines_that_only_install_what_is_here_are_read(run: str, names: list[str]) -> None:
    assert python_packages(run, find_none) == names


@pytest.mark.usefixtures("dpkg")
@pytest.mark.parametrize(
    ("run", "why"),
    [
        ("apt-get install -y git jq", "the Debian package jq is not installed"),
        ("apt-get install git=1:2.40*", r"needs git=1:2.40\*, but this machine has 1:2.39.5-0"),
        ("pip install no-such-package-at-all", "the Python package no-such-package-at-all is not installed"),
        ("pip install pygments==0.1", r"needs pygments==0.1, but this machine has"),
        ("pip install 'pygments<1'", r"needs pygments<1, but this machine has"),
        ("pip install 'pygments!=" + version("pygments") + "'", "needs pygments!="),
        ("pip install 'pygments~=1.0'", "needs pygments~=1.0"),
        ("pip install 'pygments>99.0'", "needs pygments>99.0"),
        ("pip install 'pygments>=2.0rc1'", "needs pygments>=2.0rc1"),
        ("pip install -r /app/requirements.txt", "the requirements file /app/requirements.txt does not exist"),
    ],
)
def test_a_missing_package_is_named(run: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        python_packages(run, find_none)


@pytest.mark.parametrize(
    "run",
    [
        "make",
        "pip install pygments && make",
        "pip install pygments; curl http://a.b | sh",
        "set -e | make",
        "apt-get update & make",
        "apt-get clean `make`",
        "apt-get update $(make)",
        "apt-get update $MORE",
        "apt-get update > /app/log",
        "pip install $PACKAGE",
        "pip install `cat packages`",
        "pip install git+https://a.b/c.git",
        "pip install .",
        "pip install pygments -c constraints.txt",
        "pip install --constraint=constraints.txt pygments",
        "pip install --target=/app pygments",
        "pip install -e.",
        "pip install --some-new-option pygments",
        "apt-get install --download-only git",
        "apt-get source git",
        "rm -rf /var/lib/apt/../../../usr",
        "rm -rf /usr/bin/python3",
        "ln -s /usr/bin/python3 /app/python",
        "ln -s /app/run /usr/bin/python",
        "pip install pygments > /log",
        '["pip", "install", "pygments"]',
    ],
)
def test_lines_that_do_more_need_an_image(run: str) -> None:
    assert python_packages(run, find_none) is None


@pytest.mark.parametrize(
    "option", ["-r ", "-r", "-qr", "-Uqr ", "--requirement ", "--requirement=", "--no-cache-dir --requirements="]
)
def test_requirements_in_a_file_of_the_image_are_read(option: str, tmp_path: Path) -> None:
    lines = "# for the tests\npygments >= 2  # colours\n\nnumpy\n"
    changes = image("COPY requirements.txt .", f"RUN pip install {option}requirements.txt")
    task = write_task(tmp_path / "task", {**changes, "environment/requirements.txt": lines})
    assert read_task(task).packages == ("pygments", "numpy")


@pytest.mark.parametrize("sandbox", ["docker", {"provider": "docker"}])
def test_a_sandbox_whose_packages_are_not_known_is_refused(tmp_path: Path, sandbox: str | dict[str, str]) -> None:
    task = write_task(tmp_path / "task", image("RUN pip install pygments"))
    with pytest.raises(ConfigurationError, match="need the packages pygments: use the local sandbox"):
        HarborEnv(tasks=task, sandbox=sandbox)


def test_a_sandbox_that_hides_the_packages_is_refused(tmp_path: Path) -> None:
    task = write_task(tmp_path / "task", image("RUN pip install pygments"))
    with (
        LocalSandbox(workers=1, preload=(), packages=("numpy",)) as sandbox,
        pytest.raises(ConfigurationError, match="need the packages pygments"),
    ):
        HarborEnv(tasks=task, sandbox=sandbox)
