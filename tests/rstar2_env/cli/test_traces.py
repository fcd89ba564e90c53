"""Claims about ``rstar2 traces``: what it writes, and says to mistakes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from chat_replies import said
from cli_runner import run
from flaky_server import Asked, flaky


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(json.dumps({"question": f"{n}+1?", "answer": n + 1}) + "\n" for n in range(6)))
    return path


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


def test_a_file_of_traces_is_not_overwritten_unasked(tmp_path):
    out = tmp_path / "traces.jsonl"
    command = ("traces", "--problems", "arithmetic", "-n", "3", "--out", out)
    assert run(*command).exit_code == 0
    again = run(*command)
    assert again.exit_code == 2
    assert "already exists" in again.output
    assert "--overwrite" in again.output
    assert "--resume" in again.output


def test_problems_without_worked_solutions_are_an_error_that_names_the_way_out(file, tmp_path):
    out = tmp_path / "traces.jsonl"
    done = run("traces", "--problems", file, "--out", out, columns=200)
    assert done.exit_code == 2
    words = " ".join(done.output.replace("│", " ").split())
    assert f"None of the 6 problems of {file} has a worked solution" in words
    assert "no model is named" in words
    assert f"rstar2 traces --problems {file} --out {out} --model PATH" in words
    assert not out.exists()


def test_worked_solutions_that_earn_nothing_are_an_error_which_leaves_no_file(tmp_path):
    problems, out = tmp_path / "wrong.jsonl", tmp_path / "traces.jsonl"
    problems.write_text(json.dumps({"question": "1+1?", "answer": 3, "expression": "1+1/0"}) + "\n")
    done = run("traces", "--problems", problems, "--out", out, columns=200)
    assert done.exit_code == 1
    assert f"none of the 1 problems of {problems} produced a trace" in done.stderr
    assert not out.exists()


def answers(asked: Asked, number: int) -> tuple[int, object]:
    """List one model; solve a sum in the second try, and 5+1 never."""
    if asked.path == "/v1/models":
        return 200, {"data": [{"id": "teacher"}]}
    question = asked.body["messages"][-1]["content"].rpartition("Problem: ")[2].strip()
    left, _, right = question.rstrip("?").partition("+")
    TRIED[question] += 1
    right_now = TRIED[question] > 1 and left != "5"
    return 200, said(rf"<answer>\boxed{{{int(left) + int(right) if right_now else 0}}}</answer>")


TRIED: Counter[str] = Counter()


def test_traces_of_plain_questions_are_made_by_an_endpoint_that_solves_them(file, tmp_path):
    TRIED.clear()
    out = tmp_path / "traces.jsonl"
    with flaky(answers) as server:
        command = ("traces", "--problems", file, "--endpoint", f"{server.address}/v1", "--out", out, "--tries", "3")
        command = (*command, "--temperature", "0.5", "--max-tokens", "99", "--json")
        done = run(*command)
        assert done.exit_code == 0, done.output
        figures = json.loads(done.stdout)
        assert {name: figures[name] for name in ("kept", "solved", "problems", "episodes", "levels", "tokens")} == {
            **{"kept": 5, "solved": 5, "problems": 6, "episodes": 13, "levels": {"medium": 5}, "tokens": 260},
        }
        bodies = [asked.body for asked in server.asked if asked.body]
        assert {(body["model"], body["temperature"], body["max_tokens"]) for body in bodies} == {("teacher", 0.5, 99)}
        assert json.loads(run(*command, "--resume").stdout) == figures
        assert len([asked for asked in server.asked if asked.body]) == 13
    assert len(out.read_text().splitlines()) == 5


def test_an_endpoint_with_several_models_needs_the_name_of_one(file, tmp_path):
    with flaky(lambda asked, number: (200, {"data": [{"id": "a"}, {"id": "b"}]})) as server:
        done = run("traces", "--problems", file, "--endpoint", f"{server.address}/v1", "--out", tmp_path / "t.jsonl")
    assert done.exit_code == 2
    assert "offers 2 models (a, b)" in " ".join(done.output.split())


def test_a_model_that_solves_nothing_is_an_error_with_the_reasons(file, tmp_path, tiny_model):
    out = tmp_path / "traces.jsonl"
    command = ("traces", "--problems", file, "--model", tiny_model, "--max-tokens", "8", "--tries", "2", "--out", out)
    done = run(*command, columns=200)
    assert done.exit_code == 1, done.output
    assert "the episode ended with 'tokens' (12)" in done.stderr
    assert not out.exists()
    assert len((tmp_path / "traces.episodes.jsonl").read_text().splitlines()) == 12


EVEN_LENGTHS = """
import gymnasium as gym
from rstar2_env.env.spaces import UnicodeText


class EvenLengths(gym.Env):
    def __init__(self):
        self.observation_space = self.action_space = UnicodeText(10_000)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return f"Write a text of even length. ({seed})", {}

    def step(self, action):
        return "", float(len(action) % 2 == 0), True, False, {}


gym.register("me/EvenLengths-v0", EvenLengths)
"""


@pytest.mark.slow
def test_a_model_is_cold_started_on_the_episodes_that_it_played_right(tmp_path, tiny_model):
    env, out = tmp_path / "even.py", tmp_path / "traces.jsonl"
    env.write_text(EVEN_LENGTHS)
    command = ("traces", "--env", env, "--model", tiny_model, "-n", "6", "--set", "model.max_turn_tokens=8")
    done = run(*command, "--tries", "6", "--per-problem", "2", "--out", out, "--json")
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert 6 <= len(lines) == json.loads(done.stdout)["kept"] <= 12
    assert all(len(line["messages"][-1]["content"]) % 2 == 0 and line["reward"] == 1 for line in lines)
    trained = run("sft", "--model", tiny_model, "--traces", out, "--out", tmp_path / "start", "--steps", "2")
    assert trained.exit_code == 0, trained.output
    assert (tmp_path / "start" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--tries", "2"), "--tries applies only if a model or an agent plays"),
        (("--temperature", "1"), "--temperature applies only if"),
        (("--agent", "oracle", "--error-rate", "0.5"), "--error-rate applies only to traces"),
        (("--agent", "oracle", "--model", "m"), "--model does not apply to --agent"),
        (("--endpoint", "http://x/v1", "--engine", "vllm"), "--engine does not apply to --endpoint"),
        (("--agent", "oracle", "--share", "easy"), "such as easy=0.4; got easy"),
        (("--agent", "oracle", "--share", "eesy=0.5"), "Did you mean 'easy'"),
        (("--agent", "oracle", "--worked-solutions", "some"), "worked"),
    ],
)
def test_options_that_do_not_fit_the_way_of_making_traces_are_refused(file, tmp_path, arguments, words):
    done = run("traces", "--problems", file, "--out", tmp_path / "t.jsonl", *arguments, columns=200)
    assert done.exit_code == 2
    assert words in " ".join(done.output.replace("│", " ").split())
    assert list(tmp_path.iterdir()) == [file]


def test_a_run_that_was_cut_short_goes_on_to_the_same_file(tmp_path):
    command = ("traces", "--problems", "arithmetic", "-n", "30", "--error-rate", "0.5", "--json", "--out")
    whole, out = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    figures = json.loads(run(*command, whole).stdout)
    lines = whole.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join(lines[:11]) + lines[11][:40])
    resumed = json.loads(run(*command, out, "--resume").stdout)
    assert out.read_bytes() == whole.read_bytes()
    assert {key: resumed[key] for key in ("kept", "mistakes")} == {key: figures[key] for key in ("kept", "mistakes")}
    again = run(*command, out, "--resume")
    assert json.loads(again.stdout)["kept"] == 30
    assert out.read_bytes() == whole.read_bytes()


def test_what_was_dropped_before_an_interruption_is_counted_and_not_tried_again(tmp_path):
    problems, out = tmp_path / "some.jsonl", tmp_path / "t.jsonl"
    rows = [{"question": f"{n}+1?", "answer": n + 1, **({"expression": f"{n}+1"} if n % 2 else {})} for n in range(8)]
    problems.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ("traces", "--problems", problems, "--out", out, "--json")
    first = json.loads(run(*command).stdout)
    assert (first["kept"], first["dropped"]) == (4, 4)
    out.write_bytes(b"".join(out.read_bytes().splitlines(keepends=True)[:2]))
    second = json.loads(run(*command, "--resume").stdout)
    assert (second["kept"], second["dropped"]) == (4, 4)
    assert second["reasons"]["dropped before this run"] == 2
    assert [json.loads(line)["index"] for line in out.read_text().splitlines()] == [1, 3, 5, 7]


@pytest.mark.parametrize("other", [("--seed", "1"), ("--wrong-rate", "0.5"), ("--set", "env.max_turns=5")])
def test_traces_of_other_options_are_not_gone_on_with(tmp_path, other):
    out = tmp_path / "t.jsonl"
    command = ("traces", "--problems", "arithmetic", "-n", "4", "--out", out)
    assert run(*command).exit_code == 0
    before = out.read_bytes()
    done = run(*command, "--resume", *other)
    assert done.exit_code == 2
    assert "was written with other settings" in done.output
    assert out.read_bytes() == before


def test_a_file_of_traces_is_left_alone_when_the_options_do_not_fit(tmp_path):
    out = tmp_path / "traces.jsonl"
    assert run("traces", "--problems", "arithmetic", "--out", out).exit_code == 2
    assert not out.exists()
