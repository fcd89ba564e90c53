"""A person plays in the terminal: what is typed becomes turns, and what happened is shown."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import run

from rstar2_env.core.run_folder import read_run

MATH = "rstar2/MathTool-v0"


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    file = tmp_path / "problems.jsonl"
    file.write_text(json.dumps({"id": "p1", "question": "What is 6*7?", "answer": "42"}) + "\n")
    return file


def words(text: str) -> str:
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())


def test_a_program_and_an_answer_are_written_in_the_dialect_and_earn_the_reward(problems: Path, tmp_path: Path) -> None:
    typed = ":run\nprint(6*7)\n.\n:answer 42\n"
    out = tmp_path / "mine.jsonl"
    done = run("play", MATH, "--problems", problems, "-n", "1", "--out", out, stdin=typed)
    assert done.exit_code == 0, done.output
    shown = words(done.output)
    for part in ("What is 6*7?", "print(6*7)", "execute_python_code_with_standard_io: ok", "reward", "gold answer"):
        assert part in shown, part
    (entry,) = read_run(out).held_out()
    assert (entry.episode.correct, entry.episode.turns, entry.more["gold"]) == (True, 2, "42")
    assert run("verify", "--run", out, "--episode", "0", "--problems", problems).exit_code == 0


def test_a_turn_may_be_typed_as_a_model_would_write_it(problems: Path) -> None:
    done = run("play", MATH, "--problems", problems, "-n", "1", stdin="I know it.\n<answer>\\boxed{41}</answer>\n.\n")
    shown = words(done.output)
    assert "I know it." in shown
    assert "reward │ 0" in " ".join(done.output.split())


def test_commands_that_send_nothing_leave_the_turn_to_be_typed(problems: Path) -> None:
    done = run("play", MATH, "--problems", problems, "-n", "1", stdin=":help\n:tools\n:nonsense\n.\n:answer 42\n")
    shown = words(done.output)
    assert shown.count("send an answer") >= 3
    assert '"parameters"' in done.output
    assert "There is no command :nonsense" in shown
    assert "correct" in shown


@pytest.mark.parametrize("typed", [":quit\n", "", "half a turn"])
def test_whoever_gives_up_keeps_what_is_done(typed: str, problems: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine.jsonl"
    done = run("play", MATH, "--problems", problems, "--out", out, stdin=f":answer 42\n{typed}")
    assert done.exit_code == 0
    assert "1 episodes written to" in words(done.output)
    assert len(read_run(out).held_out()) == 1


def test_a_failed_call_is_shown_with_its_status(problems: Path) -> None:
    done = run("play", MATH, "--problems", problems, "-n", "1", stdin=":run 1/0\n.\n:answer 42\n")
    assert "execute_python_code_with_standard_io: exception: ZeroDivisionError" in words(done.output)


def test_a_move_of_a_game_is_an_answer_and_where_no_tool_is_none_can_be_called() -> None:
    done = run("play", "rstar2/TicTacToe-v0", "-n", "1", stdin=":run 1\n.\n:answer 4\n:quit\n")
    assert done.exit_code == 0
    assert "no tool of the environment takes an argument 'code'" in words(done.output)
    assert "You played 4." in words(done.output)


def test_one_problem_may_be_named_and_is_played_once(problems: Path) -> None:
    done = run("play", MATH, "--problems", problems, "--problem", "p1", stdin=":answer 42\n:answer 42\n")
    assert done.output.count("gold answer") == 1
    wrong = run("play", MATH, "--problems", problems, "--problem", "p2", stdin="")
    assert wrong.exit_code == 2


def test_on_a_terminal_lines_are_typed_at_a_prompt(problems: Path) -> None:
    main, end = pty.openpty()
    command = [sys.executable, "-c", "from rstar2_env.cli import main; main()", "play", MATH, "-n", "1"]
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "100"}
    program = subprocess.Popen(
        [*command, "--problems", str(problems)],
        stdin=end,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**environment, "PYTHONPATH": str(_without_editor(problems.parent))},
    )
    os.close(end)
    os.write(main, b":answer 42\n")
    shown, _ = program.communicate(timeout=400)
    os.close(main)
    assert program.returncode == 0, shown
    assert b"> " in shown
    assert b"gold answer" in shown


def test_with_prompt_toolkit_turns_are_typed_in_an_editor_of_many_lines(problems: Path) -> None:
    pytest.importorskip("prompt_toolkit", reason="the extra 'play' is not installed")
    main, end = pty.openpty()
    command = [sys.executable, "-c", "from rstar2_env.cli import main; main()", "play", MATH, "-n", "1"]
    program = subprocess.Popen(
        [*command, "--problems", str(problems)],
        stdin=end,
        stdout=end,
        stderr=end,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"},
        start_new_session=True,
    )
    os.close(end)
    shown = b""

    def read_until(times: int, what: bytes) -> None:
        nonlocal shown
        while shown.count(what) < times:
            assert select.select([main], [], [], 120)[0], shown
            shown += os.read(main, 4096)

    for number, turn in enumerate((b":run\rprint(6*7)", b":answer 42"), 1):
        read_until(number, b"\x1b[?2004h")  # the editor reads
        os.write(main, turn + b"\x1b\r")  # Esc, then Enter, sends the turn
    read_until(1, b"gold answer")
    assert program.wait(120) == 0
    os.close(main)
    assert b"correct" in shown


def _without_editor(folder: Path) -> Path:
    """A folder that hides prompt_toolkit, where that is installed."""
    (folder / "hidden").mkdir()
    (folder / "hidden" / "prompt_toolkit.py").write_text("raise ImportError('hidden')")
    return folder / "hidden"
