"""Claims about ``rstar2 eval``: what it prints, writes, and says to mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runner import run
from every_reward import judge_server

ID = "rstar2/MathTool-v0"


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
    assert "already exists" in again.output
    resumed = json.loads(run(*command, "--resume", "--json").stdout)
    assert (resumed["played"], resumed["episodes"]) == (0, 6)
    assert run(*command, "--overwrite").exit_code == 0


def test_eval_prints_one_json_object_and_takes_options(file):
    done = run(
        *("eval", ID, "--agent", "oracle", "--problems", file, "--episodes", "4", "--seed", "3", "--workers", "2"),
        *("--set", "agent.corrupt=true", "--set", "env.max_turns=3", "--json"),
    )
    figures = json.loads(done.stdout)
    assert figures["pass_rate"]["value"] == 0.0
    assert figures["episodes"] == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rstar2/Mathtool-v0", "--agent", "oracle"), "Did you mean 'rstar2/MathTool-v0'"),
        ((ID, "--agent", "oracel"), "Did you mean 'oracle'"),
        ((ID, "--agent", "oracle"), "without end"),
        ((ID, "--agent", "oracle", "--problems", "nowhere.jsonl"), "nowhere.jsonl cannot be read"),
        ((ID, "--agent", "oracle", "--set", "agent.corrupt"), "name=value, got '--set agent.corrupt'"),
        ((ID, "--agent", "oracle", "--set", "env.X=1"), "has no option --set env.X."),
        ((ID, "--agent", "oracle", "--set", "agent.X=1"), "has no option --set agent.X."),
        ((ID, "--model", "m", "--set", "model.X=1", "-n", "1"), "has no option --set model.X."),
        ((ID, "--agent", "oracle", "--set", "env.max_turns=two"), "--set env.max_turns must be"),
        ((ID, "--agent", "oracle", "--set", "env.limits.wall_s=-1"), "--set env.limits.wall_s must be"),
        ((ID, "--agent", "oracle", "--set", "env.max_turns=0", "--episodes", "1"), "max_turns"),
        ((ID, "--agent", "oracle", "--episodes", "1", "--resume"), "add --out"),
    ],
)
def test_eval_says_what_is_wrong_in_a_line_and_exits_with_2(arguments, said):
    done = run("eval", *arguments)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_eval_plays_a_model_by_its_path_with_several_samples(file, tmp_path, tiny_model):
    out = tmp_path / "run"
    done = run(
        *("eval", ID, "--model", tiny_model, "--problems", file, "--samples", "3", "--k", "1,3", "--max-tokens", "12"),
        *("--temperature", "0.7", "--set", "model.max_in_flight=5", "--set", "engine.max_rows=3", "--out", out),
    )
    assert done.exit_code == 0, done.output
    for words in ("pass@3", "maj@3", "avg@3", "6 × 3", "tokens an episode"):
        assert words in done.output
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["episodes"], summary["n"], summary["k"]) == (18, 3, [1, 3])
    config = json.loads((out / "config.json").read_text())
    assert config["model_options"]["temperature"] == 0.7


def test_eval_plays_a_suite_and_what_the_command_line_says_goes_over_it(file, tmp_path):
    suite = tmp_path / "suite.toml"
    suite.write_text(
        f'agent = "oracle"\nn = 4\n[sets.sums]\nenv = "{ID}"\nproblems = "{file}"\n'
        '[sets.game]\nenv = "rstar2/Game24-v0"\nepisodes = 2\nn = 8\n'
    )
    done = run("eval", suite, "--samples", "2", "--out", tmp_path / "all", columns=120)
    assert done.exit_code == 0, done.output
    for words in ("sums: oracle on", "game: oracle on", "mean", "100.00 %"):
        assert words in done.output
    figures = json.loads(run("eval", suite, "--samples", "2", "--out", tmp_path / "all", "--resume", "--json").stdout)
    assert {name: (one["n"], one["played"]) for name, one in figures["sets"].items()} == {
        "sums": (2, 0),
        "game": (2, 0),
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((ID, "--episodes", "1"), "Neither an agent nor a model"),
        ((ID, "--agent", "oracle", "--temperature", "1"), "does not use --model or its options"),
        ((ID, "--agent", "oracle", "--episodes", "1", "--k", "1,2"), "(--samples 2)"),
        ((ID, "--agent", "oracle", "--episodes", "1", "--k", "one"), "--k must be whole numbers"),
        ((ID, "--agent", "oracle", "--episodes", "1", "--preset", "rstar"), "Did you mean 'rstar2'"),
        ((ID, "--agent", "oracle", "--episodes", "1", "--judge", "status"), "Did you mean 'statuses'"),
        ((ID, "--agent", "oracle", "--episodes", "1", "--baseline", "nowhere"), "nowhere does not exist"),
        (("nowhere.yaml", "--agent", "oracle"), "nowhere.yaml cannot be read"),
        ((ID, "--model", "nowhere/at/all", "--episodes", "1"), "There is no folder nowhere/at/all"),
        ((), "name an environment"),
    ],
)
def test_eval_says_what_is_wrong_with_a_model_a_suite_or_the_samples(arguments, said):
    done = run("eval", *arguments, columns=200)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_eval_adds_scores_and_says_which_it_cannot_give(file, tmp_path):
    with judge_server() as judge:
        scores = ("--score", "outcome:correct=0.5", "--score", f"model_verifier:judge={judge}")
        command = ("eval", ID, "--agent", "oracle", "--problems", file)
        figures = json.loads(run(*command, *scores, "--out", tmp_path / "run", "--json").stdout)
        shown = run(*command, *scores).output
    assert {name: one["value"] for name, one in figures["rewards"].items()} == {"outcome": 0.5, "model_verifier": 1.0}
    assert figures["pass_rate"]["value"] == figures["reward"]["value"] == 1.0
    assert "0.500" in shown
    assert "± 0.00" not in shown
    wrong = run(*command, "--score", "linear_length")
    assert wrong.exit_code == 2
    assert "'linear_length' needs the policy's tokens, which an agent does not have" in " ".join(wrong.output.split())
