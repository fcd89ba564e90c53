"""Inspect."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import inspect_ai
import pytest
from chat_replies import arguments, said
from flaky_server import flaky
from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.tool import ToolCall

from rstar2_env.adapters.inspect_task import play
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.status import ToolStatus
from rstar2_env.testing import StubSandbox

TOOL = "execute_python_code_with_standard_io"
CALL = f'<tool_call>{{"name": "{TOOL}", "arguments": {{"code": "print(6*7)", "input": ""}}}}</tool_call>'
WRONG = "<answer>\\boxed{nothing}</answer>"


def run(outputs, tmp_path, **given):
    """Run a task with a model that is a function of the messages; returns its only log."""

    def model(messages, tools, choice, config):
        made = outputs(messages)
        output = made if isinstance(made, ModelOutput) else ModelOutput.from_content("mockllm", made)
        output.usage = ModelUsage(input_tokens=1, output_tokens=1)  # else it counts them, with a file that it downloads
        return output

    options = {"env": "rstar2/MathTool-v0", "episodes": 2, **given}
    (log,) = inspect_ai.eval(
        play(**options),
        model=get_model("mockllm/model", custom_outputs=model),
        log_dir=str(tmp_path),
        display="none",
        max_samples=1,
    )
    assert log.status == "success", log.error
    return log


def spoken(messages):
    return sum(message.role == "assistant" for message in messages)


def scores(log):
    return [sample.scores["reward"] for sample in log.samples]


def test_the_score_is_the_reward_and_the_statuses_are_in_the_log(tmp_path):
    log = run(lambda messages: [CALL, WRONG][spoken(messages)], tmp_path)
    assert [score.value for score in scores(log)] == [0.0, 0.0]
    assert [score.metadata["statuses"] for score in scores(log)] == [["ok"], ["ok"]]
    assert [score.answer for score in scores(log)] == ["nothing"] * 2
    sample = read_eval_log(log.location).samples[0]
    assert sample.metadata["rstar2"]["end"] == "answered"
    turns = [event.data for event in sample.events if event.event == "info" and event.source == "rstar2"]
    assert [turn["turn"] for turn in turns] == [1, 2]
    assert turns[0]["tool_calls"][0]["status"] == "ok"
    assert (turns[1]["end"], turns[1]["correct"]) == ("answered", False)
    assert [message.role for message in sample.messages] == ["system", "user", "assistant", "user", "assistant"]


def test_a_right_answer_scores_the_full_reward(tmp_path):
    def answer(messages):
        text = next(message.text for message in messages if message.role == "user")
        return f"<answer>\\boxed{{{golds[text.partition('Problem: ')[2]]}}}</answer>"

    made = play(env="rstar2/MathTool-v0", episodes=3)
    golds = {sample.input: sample.target for sample in made.dataset}
    log = run(answer, tmp_path, episodes=3)
    assert [score.value for score in scores(log)] == [1.0] * 3
    metrics = log.results.scores[0].metrics
    assert (metrics["mean"].value, metrics["stderr"].value) == (1.0, 0.0)


def test_what_says_nothing_of_the_model_is_unscored(tmp_path):
    log = run(lambda messages: ModelOutput.from_content("mockllm", "so", stop_reason="max_tokens"), tmp_path)
    assert all(math.isnan(score.value) for score in scores(log))
    assert {score.reason for score in scores(log)} == {"cut"}
    options = {"sandbox": StubSandbox(ToolStatus.UNAVAILABLE)}
    log = run(lambda messages: CALL, tmp_path / "other", env_options=options)
    assert {score.reason for score in scores(log)} == {"unavailable"}
    assert "mean" not in log.results.scores[0].metrics or math.isnan(log.results.scores[0].metrics["mean"].value)


def test_native_calls_are_played_with_the_models_own_tools(tmp_path):
    def model(messages):
        if not spoken(messages):
            call = ToolCall(id="a", function=TOOL, arguments={"code": "print(6*7)", "input": ""})
            broken = ToolCall(id="b", function=TOOL, arguments={}, parse_error="not JSON: {code")
            output = ModelOutput.from_content("mockllm", "")
            output.choices[0].message.tool_calls = [call, broken]
            return output
        assert next(message.text for message in messages if message.role == "tool").strip() == "42"
        return WRONG

    log = run(model, tmp_path, tools="native")
    assert [score.metadata["statuses"] for score in scores(log)] == [["ok", "malformed"]] * 2


def test_an_environment_may_go_on_after_a_text(tmp_path):
    log = run(lambda messages: WRONG, tmp_path, wrappers="unary_feedback:attempts=3", episodes=1)
    (score,) = scores(log)
    assert score.metadata["turns"] == 3


def test_an_unlimited_source_needs_a_number_of_episodes():
    with pytest.raises(ConfigurationError, match="episodes="):
        play(env="rstar2/Countdown-v0")


def test_the_command_finds_the_task_by_its_name(tmp_path):
    replies = [said(None, (TOOL, arguments(code="x = 1", input=""))), said(WRONG)]
    with flaky(lambda asked, number: (200, replies[number])) as server:
        words = [sys.executable, "-P", "-m", "inspect_ai", "eval", "rstar2_env/play", "--display", "none"]
        words += ["-T", "env=rstar2/MathTool-v0", "-T", "episodes=1", "-T", "tools=native", "--log-dir", str(tmp_path)]
        words += ["--model", "openai-api/local/m", "--model-base-url", f"{server.address}/v1", "--log-format", "json"]
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=800, env={**os.environ, "LOCAL_API_KEY": "none"}
        )
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = tmp_path.glob("*.json")
    (sample,) = json.loads(file.read_text())["samples"]
    assert sample["metadata"]["rstar2"]["statuses"] == ["empty"]
    assert sample["scores"]["reward"]["value"] == 0.0
