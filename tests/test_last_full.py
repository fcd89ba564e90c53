"""Which bridges and notebooks run: only what has the inputs with which it last passed may be left out."""

import json
import subprocess

import bridges
import last_full
import pytest
from places import ROOT

NAMES = [name for group in bridges.GROUPS for name in group.bridges]


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with one commit, and a record that names it."""
    monkeypatch.setattr(last_full, "ROOT", tmp_path)
    monkeypatch.setattr(last_full, "RECORD", tmp_path / "tests" / "last_full.json")
    monkeypatch.delenv(last_full.FULL, raising=False)
    monkeypatch.delenv("RSTAR2_CI", raising=False)
    for file in ("core/a.py", "own.py", "other.py", "tests/x.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(file)
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    assert last_full.record(["bridge"])
    return tmp_path


def git(folder, *words):
    own = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    return subprocess.run(["git", "-C", str(folder), *own, *words], check=True, capture_output=True, text=True).stdout


def commit(folder):
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "change")


def unchanged():
    return last_full.unchanged_since("bridge", ["core/", "own.py"])


def test_a_part_with_the_same_inputs_need_not_run(repository):
    assert unchanged() == git(repository, "rev-parse", "HEAD").strip()
    (repository / "other.py").write_text("changed")
    commit(repository)
    assert unchanged() == git(repository, "rev-parse", "HEAD~1").strip()


@pytest.mark.parametrize("file", ["own.py", "core/a.py", "core/new.py"])
@pytest.mark.parametrize("committed", [False, True])
def test_a_part_with_a_changed_input_runs(repository, file, committed):
    (repository / file).write_text("changed")
    if committed:
        commit(repository)
    assert unchanged() is None


def test_a_part_whose_input_was_removed_or_renamed_runs(repository):
    (repository / "own.py").rename(repository / "elsewhere.py")
    commit(repository)
    assert unchanged() is None


def test_without_a_known_commit_everything_runs(repository, monkeypatch):
    assert last_full.unchanged_since("another", []) is None
    last_full.RECORD.write_text(json.dumps({"bridge": "1" * 40}))
    assert unchanged() is None
    last_full.RECORD.unlink()
    assert unchanged() is None


def test_everything_runs_if_that_is_asked_for(repository, monkeypatch):
    monkeypatch.setenv(last_full.FULL, "1")
    assert unchanged() is None


def test_only_a_committed_tree_outside_of_ci_is_recorded(repository, monkeypatch):
    commit(repository)
    before = last_full.RECORD.read_text()
    (repository / "other.py").write_text("changed")
    assert not last_full.record(["bridge"])
    commit(repository)
    monkeypatch.setenv("RSTAR2_CI", "1")
    assert not last_full.record(["bridge"])
    assert last_full.RECORD.read_text() == before
    monkeypatch.delenv("RSTAR2_CI")
    assert last_full.record(["bridge"])
    assert json.loads(last_full.RECORD.read_text())["bridge"] == git(repository, "rev-parse", "HEAD").strip()


def test_a_run_prints_what_it_recorded_or_why_not_and_nothing_in_ci(repository, monkeypatch, capsys):
    commit(repository)
    assert last_full.main([last_full.NOTEBOOKS]) == 0
    assert "notebooks passed on this commit" in capsys.readouterr().out
    head = git(repository, "rev-parse", "HEAD").strip()
    assert json.loads(last_full.RECORD.read_text())[last_full.NOTEBOOKS] == head
    (repository / "other.py").write_text("changed")
    last_full.main([last_full.NOTEBOOKS])
    assert "not recorded: the tree has changes that are not committed" in capsys.readouterr().out
    monkeypatch.setenv("RSTAR2_CI", "1")
    last_full.main([last_full.NOTEBOOKS])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", NAMES)
def test_the_inputs_of_a_bridge_are_there(name):
    inputs = last_full.bridge_inputs(name)
    assert [one for one in inputs if not (ROOT / one).exists()] == []
    assert {"rstar2_env/core/", "rstar2_env/env/", "rstar2_env/dialects/", "pyproject.toml"} <= set(inputs)
    assert "tests/support/bridges.py" in inputs
    tested = ("rstar2_env/adapters/", "rstar2_env/tools/", "rstar2_env/evaluation/", "envs_registry/", "trainers/")
    assert any(one.startswith(tested) and not one.endswith("__init__.py") for one in inputs)


def test_the_inputs_of_the_notebooks_are_there():
    assert [one for one in last_full.notebook_inputs() if not (ROOT / one).exists()] == []


def test_the_record_names_bridges_that_there_are():
    recorded = json.loads(last_full.RECORD.read_text()) if last_full.RECORD.exists() else {}
    assert set(recorded) <= {*NAMES, last_full.NOTEBOOKS}
