"""lm-evaluation-harness."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

from rstar2_env.adapters import lm_eval_task
from rstar2_env.adapters.base import single_turn
from rstar2_env.adapters.export import export_env
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.wrappers.make import make_env

CALL = (
    '<tool_call>{"name": "execute_python_code_with_standard_io", "arguments": {"code": "1", "input": ""}}</tool_call>'
)


class Answers(LM):
    """Says what a function makes of the prompt."""

    def __init__(self, says):
        super().__init__()
        self.says, self.prompts = says, []

    def generate_until(self, requests):
        self.prompts += [request.arguments[0] for request in requests]
        return [self.says(prompt) for prompt in self.prompts[-len(requests) :]]

    def loglikelihood(self, requests):
        raise NotImplementedError

    def loglikelihood_rolling(self, requests):
        raise NotImplementedError


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "math"
    files = export_env("rstar2/MathTool-v0", "lm-eval", folder, name="sums", episodes=6)
    assert {path.name for path in files} == {"sums.yaml", "sums.jsonl", "grade.py"}
    return folder


def evaluate(folder, model):
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    return simple_evaluate(model, tasks=["sums"], task_manager=manager, bootstrap_iters=0)


def test_right_answers_earn_the_reward_and_wrong_ones_do_not(exported):
    docs = [json.loads(line) for line in (exported / "sums.jsonl").read_text().splitlines()]
    golds = {doc["prompt"].partition("Problem: ")[2]: doc["gold"] for doc in docs}
    right = set(list(golds)[:3])
    assert len(golds) == 6

    def says(prompt):
        question = prompt.rpartition("Problem: ")[2].strip()
        return f"<answer>\\boxed{{{golds[question] if question in right else 'x'}}}</answer>"

    model = Answers(says)
    found = evaluate(exported, model)
    figures = found["results"]["sums"]
    assert (figures["reward,none"], figures["correct,none"], figures["no_answer,none"]) == (0.5, 0.5, 0.0)
    assert all("<answer>" in prompt and "<tool_call>" not in prompt for prompt in model.prompts)
    assert [sample["reward"] for sample in found["samples"]["sums"]].count(1.0) == 3


def test_a_turn_that_calls_the_tool_is_out_of_turns(exported):
    figures = evaluate(exported, Answers(lambda prompt: CALL))["results"]["sums"]
    assert (figures["reward,none"], figures["no_answer,none"]) == (0.0, 1.0)


def test_what_says_nothing_of_the_model_is_in_no_mean(exported, monkeypatch):
    doc = json.loads((exported / "sums.jsonl").read_text().splitlines()[0])
    made = make_env("rstar2/MathTool-v0")
    monkeypatch.setattr(single_turn, "_env", lambda *given: Failing(made))
    assert lm_eval_task.process_results(doc, ["x"]) == {}
    made.close()


class Failing:
    """An environment whose machinery fails."""

    def __init__(self, env):
        self.reset = env.reset

    def step(self, text):
        return "", 0.0, False, True, {"end": "unavailable"}


def test_the_command_exports_and_the_harness_runs_its_own_model(tmp_path):
    out = tmp_path / "task"
    export = [sys.executable, "-P", "-m", "rstar2_env.cli", "export", "--env", "rstar2/Countdown-v0", "--to", "lm-eval"]
    subprocess.run([*export, "--out", str(out), "--episodes", "3", "--name", "count"], check=True, timeout=400)
    words = [sys.executable, "-P", "-m", "lm_eval", "run", "--model", "dummy", "--tasks", "count"]
    words += ["--include_path", str(out), "--output_path", str(tmp_path / "results")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\|no_answer *\|.\W*\| +1\|", done.stdout), done.stdout


def test_an_environment_that_goes_on_after_a_text_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="grades a single answer"):
        export_env("rstar2/TicTacToe-v0", "lm-eval", tmp_path / "game", episodes=2)


def test_the_problems_are_those_of_the_test_split(exported):
    docs = [json.loads(line) for line in (exported / "sums.jsonl").read_text().splitlines()]
    assert all("/test/" in doc["id"] for doc in docs)
