"""Claims about how every command ends when something goes wrong."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
import typer
from cli_runner import run
from typer.testing import CliRunner, Result

from rstar2_env.cli._command import CliCommand
from rstar2_env.core.errors import ConfigurationError

ID = "rstar2/MathTool-v0"


def raising(error: BaseException, *arguments: str) -> Result:
    app = typer.Typer()

    @app.command(cls=CliCommand)
    def command(
        out: str = "runs/x", set_: Annotated[list[str] | None, typer.Option("--set")] = None, episodes: int = 1
    ) -> None:
        raise error

    return CliRunner().invoke(app, list(arguments))


def test_a_mistake_is_one_line_and_2():
    done = raising(ConfigurationError("That will not do."))
    assert (done.exit_code, done.output) == (2, "Error: That will not do.\n")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConfigurationError("Say how many.", option="episodes"), "Error: Say how many (--episodes).\n"),
        (ConfigurationError("Too warm.", option="heat", value="3"), "Error: Too warm (--set heat=3).\n"),
        (ConfigurationError("Too warm.", option="heat"), "Error: Too warm (--set heat=VALUE).\n"),
    ],
)
def test_a_message_speaks_of_the_flag_that_mends_it(error, said):
    assert raising(error).output == said


def test_an_option_that_the_command_has_no_flag_for_is_not_named(tmp_path):
    done = run("model", "show", tmp_path)
    assert done.stderr.startswith(f"Error: The folder {tmp_path} does not hold a model, because")
    assert done.stderr.splitlines()[0].endswith("config.json.")


def test_in_python_the_same_message_speaks_of_the_argument_and_survives_pickling():
    error = pickle.loads(pickle.dumps(ConfigurationError("Choose one.", option="chat_template", value="chatml")))
    assert str(error) == "Choose one (chat_template='chatml')."
    assert error.worded(lambda name, value: f"{name}/{value}") == "Choose one (chat_template/chatml)."


def test_what_the_system_says_of_a_named_path_is_one_line(tmp_path):
    inside = OSError(5, "Input/output error", str(tmp_path / "a" / "b"))
    done = raising(inside, "--out", str(tmp_path / "a"))
    assert done.exit_code == 2
    assert done.output == f"Error: --out: {tmp_path}/a/b: Input/output error.\n"


@pytest.mark.parametrize("error", [OSError(5, "Input/output error", "/elsewhere"), ZeroDivisionError("ours")])
def test_a_defect_of_ours_keeps_its_traceback(error, tmp_path):
    assert raising(error, "--out", str(tmp_path / "a")).exception is error


def test_ctrl_c_is_said_and_130():
    done = raising(KeyboardInterrupt())
    assert (done.exit_code, done.output) == (130, "Interrupted.\n")


@pytest.mark.parametrize(
    "command", [("verify", "1", "1", "--tolerance", "inf"), ("train", "grpo_roc", "--model", "m", "--lr", "nan")]
)
def test_a_number_that_is_not_finite_is_refused_before_the_command_runs(command):
    done = run(*command)
    assert done.exit_code == 2
    assert f"must be a finite number, not {command[-1]}." in done.stderr


FILE = "{file}"  # a file, where a folder is needed


@pytest.mark.parametrize(
    "command",
    [
        ("traces", "--problems", "arithmetic", "-n", "2", "--out", f"{FILE}/deep/t.jsonl"),
        ("eval", ID, "--agent", "oracle", "--problems", "arithmetic", "-n", "1", "--out", f"{FILE}/e.jsonl"),
        ("problems", "write", "arithmetic", "-n", "2", "--out", f"{FILE}/p.jsonl"),
        ("problems", "decontaminate", "--problems", "arithmetic", "--against", "arithmetic", "--out", f"{FILE}/p"),
        ("train", "grpo_roc", "--model", "MODEL", "--out", f"{FILE}/run"),
        ("train", "grpo_roc", "--model", "MODEL", "--out", FILE),
        ("sft", "--model", "MODEL", "--traces", FILE, "--out", f"{FILE}/run"),
        ("demo", "--out", f"{FILE}/run"),
        ("list", "envs", "rstar2/MathTol-v0"),
        ("eval", "CartPole-v1", "--agent", "oracle", "-n", "1"),
        ("validate", "rstar2/MathTol-v0"),
        ("verify", "--jsonl", FILE),
        ("train", "grpo_rock"),
        ("train", "grpo_roc"),
        ("train", "grpo_roc", "--config", FILE),
        ("train", "grpo_roc", "--config", f"{FILE}.toml"),
        ("sandbox", "run", FILE, "--provider", "lokal"),
        ("sandbox", "check", "--provider", "docker", "--set", "base_url=tcp://127.0.0.1:9"),
        ("problems", "show", "nowhere.csv"),
        ("problems", "stats", FILE),
    ],
)
def test_no_mistake_ends_in_a_traceback(command, tmp_path):
    file = tmp_path / "file"
    file.write_text("} no TOML, no JSON\n")
    done = run(*(word.replace(FILE, str(file)).replace("MODEL", str(tmp_path / "model")) for word in command))
    assert done.exit_code == 2, done.output
    assert "Traceback" not in done.output
    assert "Error" in done.output
    assert not Path(f"{file}.part").exists()


@pytest.mark.parametrize(
    ("suffix", "text", "command"),
    [
        (".json", "[" * 100_000, ("train", "grpo_roc", "--config", FILE)),
        (".yaml", "[" * 100_000, ("eval", FILE)),
        (".toml", "a = " + "[" * 100_000, ("run", FILE)),
        (".json", "[" * 100_000, ("doctor", "--machine", FILE)),
        (".json", "[" * 100_000, ("diagnose", FILE)),
        (".json", "\x80", ("diagnose", FILE)),
        (".jsonl", '{"step": 1, "loss": 1' + "0" * 400 + "}\n", ("diagnose", FILE)),
        (".jsonl", "[" * 100_000 + "\n", ("compare", FILE, FILE)),
        (".jsonl", "[" * 100_000 + "\n", ("verify", "--jsonl", FILE)),
        (".jsonl", "[" * 100_000 + "\n", ("problems", "stats", FILE)),
    ],
)
def test_a_file_that_is_nested_too_deeply_or_not_text_is_refused(suffix, text, command, tmp_path):
    file = (tmp_path / "file").with_suffix(suffix)
    file.write_text(text, "latin-1")
    done = run(*(word.replace(FILE, str(file)) for word in command))
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("Error: ")
    assert str(file) in done.stderr


def test_characters_that_the_output_cannot_encode_are_written_as_escapes():
    command = [sys.executable, "-c", "from rstar2_env.cli import main; main()", "view", "--help"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "80"}
    done = subprocess.run(command, capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert b"\\u2026" in done.stdout


@pytest.mark.parametrize(
    ("words", "given"), [(["-n", "0"], "'0'"), (["--episodes", "1e3"], "'1e3'"), (["--seed", "x"], "'x'")]
)
def test_an_argument_of_the_wrong_type_or_range_is_quoted(words, given):
    result = run("eval", ID, "--agent", "oracle", *words)
    assert result.exit_code == 2
    told = " ".join(result.stderr.split())
    assert f"Invalid value for '{words[0]}'" in told
    assert f", got {given}." in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--lr", "nan"], "--lr must be a finite number, not nan."),
        (["--learning-rate=inf"], "--learning-rate must be a finite number, not inf."),
        (["--lr", "-1"], "--lr must be a positive number, not -1.0."),
        (["--set", "learning_rate=-1"], "--set learning_rate must be a positive number, or none, not -1.0."),
        (["--group-size", "9999999"], "--group-size must be at most 1,048,576, not 9,999,999"),
    ],
)
def test_a_message_about_an_option_names_it_as_it_was_typed(words, told):
    done = run("train", "grpo_roc", "--model", "nowhere", *words)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"Error: {told}")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("run -c 1 --timeout 1e12", "--timeout must be a number of seconds above 0 and at most 1000000000"),
        ("run -c 1 --set limits.wall_s=-1", "--set limits.wall_s must be a number of seconds above 0"),
        ("serve --queue 0", "--queue must be an integer of at least 1, not 0."),
        ("serve --judge-memory 0", "--judge-memory must be an integer from 1"),
        ("serve --workers 0 --port 0", "--workers must be an integer of at least 1, not 0."),
        ("serve --tls-cert x", "HTTPS needs both a certificate (--tls-cert) and its key (--tls-key)."),
    ],
)
def test_a_message_about_a_limit_of_the_sandbox_names_the_flag(command, told):
    done = run("sandbox", *command.split())
    assert done.exit_code == 2
    assert done.stderr.startswith(f"Error: {told}")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-n", "2", "--episodes", "3"], "-n 2 and --episodes 3 disagree: omit one of them."),
        (["-n2", "--episodes=3"], "-n 2 and --episodes 3 disagree: omit one of them."),
        (["--n", "2", "--samples", "3"], "--samples 2 and --samples 3 disagree: omit one of them."),
        (["--out", "--json"], "Option --out needs a value, but the next word is the option --json."),
        (["--out", "-n", "2"], "Option --out needs a value, but the next word is the option -n."),
        (["--out", "--json"], "If this is the value, write --out=--json."),
        (["-n", "--json"], "If this is the value, write -n--json."),
        (["-n=2", "--episodes", "2"], "-n =2 and --episodes 2 disagree: omit one of them."),
    ],
)
def test_options_that_cannot_be_meant_as_typed_are_refused(words, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("eval", ID, "--agent", "oracle", *words)
    assert done.exit_code == 2
    assert "Error: " in done.stderr
    assert told in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_two_names_of_a_switch_that_contradict_each_other_are_refused():
    done = run("view", "--text", "--pager", "--no-pager", "nowhere")
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: --pager and --no-pager disagree: omit one of them.")


def test_equal_repetitions_lists_and_values_that_look_like_options_are_accepted(tmp_path):
    out = tmp_path / "e.jsonl"
    words = ["-n", "1", "--episodes=1", "--set", "env.max_turns=3", "--set", "env.split=test", "--json", "--json"]
    assert run("eval", ID, "--agent", "oracle", *words, f"--out={out}").exit_code == 0
    unknown = run("list", "agents", "--", "--json")
    assert "There is no agent named '--json'" in unknown.stderr


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("--verison",), "No such option: --verison (Possible options: --version)\ndocs: rstar2 --help\n"),
        (("sandbox", "image", "--package"), "Option --package needs a value.\ndocs: rstar2 sandbox image --help\n"),
        (("sandbox", "run"), "No program is given"),
        (
            ("launch", "--serve", "3-1", "--", "grpo", "--model", "m"),
            "'3-1' does not name devices: write 0-3, or 0,2,5 (--serve).",
        ),
        (
            ("eval", ID, "--agent", "oracle", "--temperature", "0", "--set", "engine.max_rows=2"),
            "--agent does not use --model or its options: omit --temperature and --set engine.max_rows=2, or omit "
            "--agent.",
        ),
        (("audit", "verifier:rules", "--golds", "colors"), "There is no class of gold answers named 'colors'."),
        (
            ("traces", "--endpoint", "localhost:9/v1", "--problems", "arithmetic", "-n", "1", "--out", "{file}.jsonl"),
            "--endpoint must be an address such as http://127.0.0.1:8000/v1, not 'localhost:9/v1'.",
        ),
        (
            ("traces", "--problems", "arithmetic", "-n", "1", "--out", "{file}.jsonl", "--call-mistake", "typo"),
            "--call-mistake must be a list",
        ),
        (
            ("traces", "--agent", "oracle", "-n", "1", "--out", "{file}.jsonl", "--no-reasons"),
            "--no-reasons applies only to traces that are made from worked solutions",
        ),
        (("doctor", "--machine", FILE), "The file {file} does not contain the output of `rstar2 doctor --json`"),
        (("doctor", "--machine", "nowhere.json"), "--machine: nowhere.json: No such file or directory."),
        (("sft", "--model", "m", "--traces", FILE), "{file}:1 is not a record"),
        (("sft", "--model", "m", "--traces", FILE, "--sharding", "fsdp"), "--sharding must be one of 'none', 'fsdp2'"),
    ],
)
def test_an_error_says_what_was_typed_and_what_to_do(command, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "file"
    file.write_text('{"question": "1 + 1?", "answer": "2"}\n')
    done = run(*(word.replace(FILE, str(file)) for word in command))
    assert done.exit_code == 2
    assert done.stderr.startswith(f"Error: {told}".replace(FILE, str(file)))


@pytest.mark.parametrize(
    ("command", "text", "option"),
    [
        (("eval",), 'trainer = "grpo"', "trainer"),
        (("eval",), 'env = "rstar2/MathTool-v0"\nagent = "oracle"\nepisodes = "many"', "episodes"),
        (("sft", "--model", "m", "--traces", FILE, "--config"), "learning_rate = -1.0", "learning_rate"),
    ],
)
def test_an_error_about_an_option_of_a_file_names_the_file(command, text, option, tmp_path):
    (tmp_path / "file").write_text('{"messages": [{"role": "user", "content": "1 + 1?"}]}\n')
    options = tmp_path / "options.toml"
    options.write_text(text)
    done = run(*(word.replace(FILE, str(tmp_path / "file")) for word in command), options)
    assert done.exit_code == 2
    assert f"The file {options} contains {option}." in done.stderr
