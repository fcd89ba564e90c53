"""Claims about ``rstar2 new``: each kind passes its test as written, and nothing is overwritten."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from cli_runner import run
from places import ROOT

from rstar2_env.cli._scaffold import KINDS, scaffold


def pytest_of(folder: Path) -> None:
    """Run pytest in a folder, as a user would."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


@pytest.mark.slow
def test_every_kind_passes_its_test_and_the_linter_as_written(tmp_path):
    for kind in KINDS:
        scaffold(kind, f"new-{kind}", tmp_path, package=False).write()
    assert len(list(tmp_path.glob("*.py"))) == 2 * len(KINDS)
    pytest_of(tmp_path)
    for command in (("check", "--select", "E,F,W,UP,B,RUF,SIM,PT"), ("format", "--check")):
        linter = [sys.executable, "-m", "ruff", *command, "--isolated", "--line-length", "120", "."]
        done = subprocess.run(linter, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_a_new_environment_is_fit_to_train_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("new", "env", "divisors")
    assert done.exit_code == 0, done.output
    assert "rstar2 validate ./divisors.py" in done.stdout
    checked = run("validate", "./divisors.py")
    assert checked.exit_code == 0, checked.output


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["env", "tool"])
def test_a_distribution_passes_its_tests_and_is_found_when_installed(kind, tmp_path):
    made = scaffold(kind, "MyThing", tmp_path, package=True)
    made.write()
    assert made.folder == tmp_path / "my-thing"
    pytest_of(made.folder)
    project = tomllib.loads((made.folder / "pyproject.toml").read_text())["project"]
    workflow = yaml.safe_load((made.folder / ".github/workflows/test.yml").read_text())
    steps = [step.get("run") for step in workflow["jobs"]["test"]["steps"]]
    assert ("rstar2 validate my_thing/MyThing-v0" in steps) is (kind == "env")
    assert "my-name" not in "".join(
        path.read_text() for path in made.folder.rglob("*") if path.suffix in (".md", ".toml")
    )
    card = (made.folder / "README.md").read_text()
    assert ("### Reward\n1 at the end for the right count, else 0." in card) is (kind == "env")
    if kind == "tool":
        assert "entry-points" not in project
        return
    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    installed = subprocess.run([*install, "--target", site, made.folder], capture_output=True, text=True)
    assert installed.returncode == 0, installed.stderr
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    found = subprocess.run(
        [sys.executable, "-c", "from rstar2_env import make_env; make_env('my_thing/MyThing-v0').close()"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    broken = site / "broken-1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\nLicense: a licence\n")
    (broken / "entry_points.txt").write_text("[rstar2_env.envs]\nit = no_such_module\n")
    listed = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "rstar2_env.cli", "list", "envs", "--all", "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert listed.returncode == 1, listed.stderr
    entries = {entry["env_id"]: entry for entry in json.loads(listed.stdout)}
    theirs = entries["my_thing/MyThing-v0"]
    assert (theirs["distribution"], theirs["version"], theirs["licence"]) == ("my-thing", "0.1.0", "MIT")
    assert (theirs["ok"], theirs["validation"]) == (True, "8 problems and the contract passed")
    assert entries["it"]["ok"] is False
    assert "no_such_module cannot be loaded: ModuleNotFoundError" in entries["it"]["validation"]
    assert (entries["it"]["version"], entries["it"]["licence"]) == ("1.0", "a licence")
    ours = entries["rstar2/MathTool-v0"]
    assert (ours["distribution"], ours["licence"], ours["ok"]) == ("rstar2-env", "MIT", None)


def test_the_entry_point_of_a_distribution_has_the_group_of_its_registry(tmp_path):
    for kind in KINDS:
        files = scaffold(kind, "MyThing", tmp_path, package=True).files
        groups = tomllib.loads(files["pyproject.toml"])["project"].get("entry-points", {})
        registry, _, name = KINDS[kind].registry.partition(":")
        expected = getattr(importlib.import_module(registry), name)._entry_points if registry else "rstar2_env.envs"
        assert groups == ({} if kind == "tool" else {expected: {"my_thing": "my_thing"}})


def test_no_file_is_overwritten_and_none_is_written_beside_it(tmp_path):
    mine = tmp_path / "test_words.py"
    mine.write_text("mine")
    done = run("new", "agent", "words", "--out", tmp_path)
    assert done.exit_code == 2
    assert "test_words.py. Choose another name" in " ".join(done.output.split())
    assert mine.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [mine]


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("env", "json", "is already installed"),
        ("env", "numpy", "is already installed"),
        ("env", "class", "cannot be the name of a Python module"),
        ("env", "../up", "cannot be the name of a Python module"),
        ("env", "3d", "cannot be the name of a Python module"),
        ("env", "ü", "begin with a letter from a to z"),
        ("env", "rstar2", "'rstar2' belongs to rstar2-env itself"),
        ("selector", "roc", "The selector 'roc' exists already"),
        ("selecter", "mine", "Did you mean 'selector'"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(kind, name, said, tmp_path):
    done = run("new", kind, name, "--out", tmp_path)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())
    assert list(tmp_path.iterdir()) == []


def test_each_slot_and_each_kind_has_a_template():
    from rstar2_env.trainers.options.slots import SLOTS

    assert set(SLOTS) <= set(KINDS)
    templates = {path.stem for path in (ROOT / "rstar2_env/cli/templates").glob("*.txt")}
    assert templates == {*KINDS, "package.pyproject", "package.readme", "package.workflow"}
