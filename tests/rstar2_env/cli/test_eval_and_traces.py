"""Claims about the commands eval, traces, problems and agents: what they print, write, and say to mistakes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from rstar2_env.cli import problems
from rstar2_env.cli.agents import agents_command
from rstar2_env.cli.eval import eval_command
from rstar2_env.cli.traces import traces_command

ID = "rstar2/MathTool-v0"
app = typer.Typer()
app.command("eval")(eval_command)
app.command("traces")(traces_command)
app.command("agents")(agents_command)
app.add_typer(problems.app, name="problems")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(json.dumps({"question": f"{n}+1?", "answer": n + 1}) + "\n" for n in range(6)))
    return path


def test_eval_prints_a_table_and_writes_a_line_an_episode(file, tmp_path):
    out = tmp_path / "out.jsonl"
    done = run("eval", ID, "--agent", "oracle", "--problems", file, "--out", out)
    assert done.exit_code == 0, done.output
    for words in ("oracle on", "pass rate", "100.00", "answered 6", "episodes/s"):
        assert words in done.output
    assert len(out.read_text().splitlines()) == 6


def test_eval_resumes_and_otherwise_refuses_to_overwrite(file, tmp_path):
    out = tmp_path / "out.jsonl"
    command = ("eval", ID, "--agent", "oracle", "--problems", file, "--out", out)
    assert run(*command).exit_code == 0
    again = run(*command)
    assert again.exit_code == 2
    assert "exists already" in again.output
    resumed = json.loads(run(*command, "--resume", "--json").stdout)
    assert (resumed["played"], resumed["episodes"]) == (0, 6)
    assert run(*command, "--overwrite").exit_code == 0


def test_eval_prints_one_json_object_and_takes_options(file):
    done = run(
        *("eval", ID, "--agent", "oracle", "--problems", file, "--episodes", "4", "--seed", "3", "--workers", "2"),
        *("--agent-option", "corrupt=true", "--env-option", "max_turns=3", "--json"),
    )
    figures = json.loads(done.stdout)
    assert figures["pass_rate"]["value"] == 0.0
    assert figures["episodes"] == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rstar2/Mathtool-v0", "--agent", "oracle"), "Did you mean: `MathTool`"),
        ((ID, "--agent", "oracel"), "Did you mean 'oracle'"),
        ((ID, "--agent", "oracle"), "never ends"),
        ((ID, "--agent", "oracle", "--problems", "nowhere.jsonl"), "nowhere.jsonl cannot be read"),
        ((ID, "--agent", "oracle", "--agent-option", "corrupt"), "name=value"),
        ((ID, "--agent", "oracle", "--env-option", "max_turns=0", "--episodes", "1"), "max_turns"),
        ((ID, "--agent", "oracle", "--episodes", "1", "--resume"), "needs --out"),
    ],
)
def test_eval_says_what_is_wrong_in_a_line_and_exits_with_2(arguments, said):
    done = run("eval", *arguments)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_traces_writes_lines_that_keep_their_reward(tmp_path):
    out = tmp_path / "deep" / "traces.jsonl"
    done = run(
        *("traces", "--problems", "arithmetic", "-n", "20", "--out", out),
        *("--error-rate", "0.5", "--wrong-rate", "0.5", "--json"),
    )
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    figures = json.loads(done.stdout)
    assert figures["kept"] == len(lines) == 20
    assert figures["earned_their_reward"] == sum(line["reward"] for line in lines)
    assert figures["mistakes"]["wrong"] == sum(line["wrong"] for line in lines)


def test_traces_makes_only_the_mistakes_it_is_told_to(tmp_path):
    command = ("traces", "--problems", "arithmetic", "-n", "10", "--out", tmp_path / "t.jsonl", "--error-rate", "1")
    done = run(*command, "--call-mistake", "broken_json", "--call-mistake", "unknown_tool", "--json")
    assert set(json.loads(done.stdout)["mistakes"]) <= {"broken_json", "unknown_tool"}
    refused = run(*command, "--call-mistake", "typo", "--overwrite")
    assert refused.exit_code == 2
    assert "undefined_name" in refused.output


def test_traces_tells_what_it_dropped_and_does_not_overwrite_unasked(file, tmp_path):
    out = tmp_path / "traces.jsonl"
    done = run("traces", "--problems", file, "--out", out)
    assert done.exit_code == 0
    assert "calculations nor an expression" in done.output
    again = run("traces", "--problems", file, "--out", out)
    assert again.exit_code == 2
    assert "exists already" in again.output


def test_a_file_of_traces_is_left_alone_when_the_options_do_not_fit(tmp_path):
    out = tmp_path / "traces.jsonl"
    assert run("traces", "--problems", "arithmetic", "--out", out).exit_code == 2
    assert not out.exists()


def test_problems_shows_the_first_ones(file):
    shown = run("problems", "show", file, "-n", "2")
    assert "sums-1" in shown.output
    assert "sums-3" not in shown.output
    lines = run("problems", "show", "arithmetic:level=3", "-n", "2", "--split", "test", "--json").stdout.splitlines()
    assert json.loads(lines[1])["id"] == "arithmetic:level=3/test/1"


def test_problems_counts(file):
    assert "whole number 6" in run("problems", "stats", file).output
    assert json.loads(run("problems", "stats", "arithmetic", "-n", "50", "--json").stdout)["problems"] == 50


def test_problems_says_what_is_wrong_with_a_file(tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"question": "q"}\n')
    done = run("problems", "stats", bad)
    assert done.exit_code == 2
    assert "bad.jsonl:1: field 'answer' is missing" in " ".join(done.output.split())


def test_agents_are_listed_with_a_line_and_their_options():
    listed = json.loads(run("agents", "--json").stdout)
    assert listed["oracle"]["options"] == ["corrupt", "use_tool", "dialect"]
    assert "calculations" in run("agents").output


@pytest.mark.slow
def test_ctrl_c_at_the_terminal_keeps_what_was_done_and_exits_with_130(tmp_path):
    # The terminal sends the signal to every process of the group: sandbox and verifier must survive it too.
    out = tmp_path / "out.jsonl"
    program = "import typer; from rstar2_env.cli.eval import eval_command; typer.run(eval_command)"
    command = [
        sys.executable,
        "-c",
        program,
        ID,
        "--agent",
        "oracle",
        "--problems",
        "arithmetic",
        "--episodes",
        "20000",
    ]
    playing = subprocess.Popen(
        [*command, "--out", str(out), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 60
        while not (out.exists() and out.stat().st_size) and time.monotonic() < deadline and playing.poll() is None:
            time.sleep(0.05)
        os.killpg(playing.pid, signal.SIGINT)
        stdout, stderr = playing.communicate(timeout=60)
    finally:
        playing.kill()
    assert playing.returncode == 130, stderr.decode()
    figures = json.loads(stdout)
    assert figures["interrupted"]
    assert figures["unavailable"] == 0
    assert figures["played"] == len(out.read_text().splitlines()) > 0
