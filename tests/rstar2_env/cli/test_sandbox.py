"""``rstar2 sandbox run`` and ``check``, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runner import run
from typer.testing import CliRunner

from rstar2_env.cli.sandbox import app

RUNNER = CliRunner()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text("n = int(input())\nprint('read', n)\nn + 1\n")
    (tmp_path / "stdin").write_text("41\n")
    return path


def test_one_program_gives_one_json_object(program: Path) -> None:
    result = RUNNER.invoke(app, ["run", str(program), "--json", "--stdin", str(program.with_name("stdin"))])
    assert result.exit_code == 0, result.output
    outcome = json.loads(result.stdout)
    assert (outcome["status"], outcome["stdout"], outcome["value"]) == ("ok", "read 41\n", "42")
    fields = {
        "status",
        "exit_code",
        "signal",
        "stdout",
        "stderr",
        "value",
        "wall_s",
        "cpu_s",
        "peak_memory_mb",
        "truncated",
    }
    assert fields <= outcome.keys()


def test_a_program_may_be_typed_or_come_from_stdin() -> None:
    typed = run("sandbox", "run", "-c", "print(6 * 7)", "-c", "1 / 0")
    assert typed.exit_code == 1
    assert "== -c 1\n42\n" in typed.output
    assert "ZeroDivisionError" in typed.output
    piped = run("sandbox", "run", "-", "--json", stdin="print('from stdin')\n")
    assert json.loads(piped.stdout)["stdout"] == "from stdin\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give a FILE"),
        (("nowhere.py",), "nowhere.py: No such file"),
        (("-c", "1", "--set", "wokers=2"), "Did you mean 'workers'"),
        (("-c", "1", "--timeout", "-1"), "--timeout"),
    ],
)
def test_mistakes_are_told_in_a_line(arguments: tuple[str, ...], said: str) -> None:
    done = run("sandbox", "run", *arguments)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


def test_several_programs_give_a_line_each_and_a_failure_shows_in_the_exit_code(tmp_path: Path) -> None:
    for name, code in (("a", "1"), ("b", "while True: pass"), ("c", "print('x' * 100)")):
        (tmp_path / name).write_text(code)
    arguments = [str(tmp_path / name) for name in "abc"]
    result = RUNNER.invoke(app, ["run", *arguments, "--json", "--timeout", "0.5", "--output", "50"])
    assert result.exit_code == 1
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["status"] for line in lines] == ["ok", "timeout", "output_limit"]
    assert [Path(line["file"]).name for line in lines] == ["a", "b", "c"]


def test_a_flag_and_a_setting_of_the_same_option_are_refused() -> None:
    for flag, setting in (("--isolation", "isolation=best"), ("--timeout", "limits.wall_s=3")):
        value = "none" if flag == "--isolation" else "2"
        done = run("sandbox", "run", "-c", "1", flag, value, "--set", setting)
        assert done.exit_code == 2
        assert f"{flag} and --set {setting.partition('=')[0].partition('.')[0]} both set" in done.stderr


def test_several_files_can_be_cells_of_one_session(tmp_path: Path) -> None:
    cells = {"a": "x = 41", "b": "import time\ntime.sleep(60)", "c": "x + 1"}
    for name, code in cells.items():
        (tmp_path / name).write_text(code)
    arguments = [*(str(tmp_path / name) for name in cells), "--session", "s", "--timeout", "0.5"]
    lines = [json.loads(line) for line in RUNNER.invoke(app, ["run", *arguments, "--json"]).stdout.splitlines()]
    assert [line["session"] for line in lines] == ["new", "interrupted", "kept"]
    assert [line["session_note"] is None for line in lines] == [True, False, True]
    assert lines[2]["value"] == "42"
    shown = RUNNER.invoke(app, ["run", *arguments]).output
    assert "[timeout] session interrupted" in shown
    assert "its effects until then are kept" in shown


def test_without_json_a_program_speaks_for_itself(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print('said')\n1 / 0\n")
    result = RUNNER.invoke(app, ["run", str(tmp_path / "a.py")])
    assert result.exit_code == 1
    assert "said\n" in result.output
    assert "ZeroDivisionError: division by zero" in result.output
    assert "[exception] exit 1" in result.output


@pytest.mark.slow
def test_check_shows_every_promise_with_the_escape_that_was_tried() -> None:
    result = RUNNER.invoke(app, ["check", "--json"])
    assert result.exit_code == 0, result.output
    layers = json.loads(result.stdout)["layers"]
    assert {layer["tested"] for layer in layers if layer["required"]} == {"held"}
    assert {layer["tested"] for layer in layers if not layer["required"]} == {None, "held"}


@pytest.mark.slow
def test_check_prints_a_table() -> None:
    result = RUNNER.invoke(app, ["check", "--isolation", "strict"])
    assert result.exit_code == 0, result.output
    assert "blocked" in result.output
    assert "no network" in result.output
    assert max(map(len, result.output.splitlines())) <= 80
