"""Every example runs as it is written, with real small parts, and shows what it says."""

from __future__ import annotations

import re
import runpy
import sys

import gymnasium as gym
import pytest
from chat_replies import arguments, numbered, said
from flaky_server import flaky
from places import ROOT

from rstar2_env.evaluation.play.episode import play_episode
from rstar2_env.problems import Problem
from rstar2_env.wrappers.make import make_env

EXAMPLES = ROOT / "examples"
PAGE = (EXAMPLES / "README.md").read_text(encoding="utf-8")
FILES = sorted(EXAMPLES.glob("*.py"))
LONGEST = 60


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs an example as a program, and returns what it printed."""

    def run(name, *words):
        path = str(EXAMPLES / f"{name}.py")
        monkeypatch.setattr(sys, "argv", [path, *map(str, words)])
        capsys.readouterr()
        runpy.run_path(path, run_name="__main__")
        return capsys.readouterr().out

    yield run
    gym.registry.pop("mine/Divisors-v0", None)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_is_short_and_on_the_page(path):
    assert len(path.read_text().splitlines()) < LONGEST
    assert f"]({path.name})" in PAGE


def test_the_page_names_no_other():
    assert {path.name for path in FILES} == set(re.findall(r"\]\((\w+\.py)\)", PAGE))


def test_first_episode(run):
    assert run("first_episode").endswith("status: ok\nreward: 1.0 end: answered correct: True\n")


@pytest.mark.slow
def test_own_agent(run):
    said = run("own_agent")
    assert "keeps the contract: protocol, turns" in said
    assert re.search(r"pass rate +25\.00", said)
    env = make_env("rstar2/MathTool-v0")
    agent = runpy.run_path(str(EXAMPLES / "own_agent.py"))["Summer"]()
    assert play_episode(env, agent, problem=Problem("p", "Ann has 3 and finds 4. How many?", "7")).correct
    env.close()


def test_endpoint_agent(run):
    calls = said(None, ("execute_python_code_with_standard_io", arguments(code="6*7", input="")))

    def answer(asked, number):
        spoken = any(message["role"] == "assistant" for message in asked.body["messages"])
        return 200, said("<answer>\\boxed{42}</answer>") if spoken else numbered(calls, number)

    with flaky(answer) as server:
        shown = run("endpoint_agent", f"{server.address}/v1", "m")
    assert shown.count("['ok']") == 10
    assert len(server.asked) == 20


@pytest.mark.slow
def test_compare_checkpoints(run, tiny_model, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    shown = run("compare_checkpoints", tiny_model, tiny_model)
    assert "pass@1: difference +0.000, p = 1.000" in shown


@pytest.mark.slow
def test_own_environment(run):
    shown = run("own_environment")
    assert "How many positive divisors does 8911 have?" in shown
    assert "<tool_response>\n7\n</tool_response>" in shown
    assert "keeps the contract: gymnasium_check" in shown


@pytest.mark.slow
def test_own_reward(run, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    shown = run("own_reward")
    assert "'Varied': " in shown
    assert "trained on" in shown


@pytest.mark.slow
def test_own_trainer_part(run, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    shown = run("own_trainer_part")
    assert "keeps the contract: shapes" in shown
    assert "steps: [1, 2]" in shown


@pytest.mark.slow
def test_trl_environment_factory(run, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    shown = run("trl_environment_factory")
    assert shown.count("no_answer [] 0.0") == 4
    assert "rewards: [0.0]" in shown


@pytest.mark.slow
def test_search_agent(run):
    shown = run("search_agent")
    once, often = (int(count) for count in re.findall(r"iterations: (\d) of 8", shown))
    assert once < 4 < often
