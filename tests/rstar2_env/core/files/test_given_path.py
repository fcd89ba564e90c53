"""A path that does not exist, and one of the wrong kind, are told apart, by each command that takes a path."""

import os
import re

import pytest
from cli_runner import run

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.given_path import check_given


@pytest.mark.parametrize("kind", [None, "file", "folder"])
def test_a_missing_path_is_named_with_the_folder_that_it_is_relative_to(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    told = f"nowhere does not exist (the current folder is {tmp_path}): give a run."
    with pytest.raises(ConfigurationError, match=re.escape(told)):
        check_given(tmp_path.relative_to(tmp_path) / "nowhere", "give a run", kind=kind)


WRONG = [("f", "folder", "f is a file"), ("d", "file", "d is a folder"), ("p", "file", "p is a pipe or a device")]


@pytest.mark.parametrize(("name", "kind", "told"), WRONG)
def test_a_path_of_the_wrong_kind_exists(tmp_path, name, kind, told):
    (tmp_path / "f").touch()
    os.mkfifo(tmp_path / "p")
    (tmp_path / "d").mkdir()
    with pytest.raises(ConfigurationError, match=f"{told}: give another"):
        check_given(tmp_path / name, "give another", kind=kind)
    check_given(tmp_path / name, "give another")


COMMANDS = [
    (("view", "--text", "PATH"), "viewer"),
    (("view", "PATH", "--episode", "3"), "viewer"),
    (("view", "PATH", "--report", "page.html"), "viewer"),
    (("diagnose", "PATH"), "run-folder"),
    (("compare", "PATH", "PATH"), "run-folder"),
    (("verify", "--run", "PATH"), "run-folder"),
    (("export", "PATH", "--out", "model"), "models"),
    (("validate", "./PATH.py"), "own-code"),
    (("audit", "./PATH.py:grade"), "evaluation"),
]


@pytest.mark.parametrize(("words", "section"), COMMANDS)
def test_a_command_says_that_a_path_does_not_exist(tmp_path, monkeypatch, words, section):
    monkeypatch.chdir(tmp_path)
    result = run(*(word.replace("PATH", "nowhere") for word in words))
    assert result.exit_code == 2
    told = " ".join(result.stderr.split())
    assert re.search(r"nowhere(\.py)? does not exist", told), told
    assert "does not contain" not in told
    assert told.endswith(f"rstar2 help troubleshooting#{section}")


def test_a_file_that_exists_is_not_called_missing_when_a_folder_is_needed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    result = run("export", "notes.txt", "--out", "model")
    assert result.exit_code == 2
    assert "notes.txt is a file: give the folder of a run or of a model" in " ".join(result.stderr.split())
