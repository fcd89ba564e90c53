"""The agent behind an endpoint: what it sends, what it does when the endpoint fails, and a real server."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import gymnasium as gym
import pytest
from flaky_server import flaky

import rstar2_env  # noqa: F401 - registers the environment
from rstar2_env.agents import make
from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.evaluation.play import play_episode
from rstar2_env.problems import Problem
from rstar2_env.testing.stub_sandbox import StubSandbox

PROBLEM = Problem("p", "6*7?", "42")
ARGUMENTS = {"code": "print(6*7)", "input": ""}
CALL = (
    "<tool_call>"
    + json.dumps({"name": "execute_python_code_with_standard_io", "arguments": ARGUMENTS})
    + "</tool_call>"
)
ANSWER = "<answer>\\boxed{42}</answer>"


def completion(text):
    return {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}


def agent_of(server, **options):
    return make("openai", base_url=f"{server.address}/v1", model="m", **{"retries": 2, "timeout_s": 20, **options})


def turn(agent):
    agent.reset("hello", {"system": "be good"}, seed=3)
    return agent.act("hello", {})


@pytest.fixture
def env():
    env = gym.make("rstar2/MathTool-v0", sandbox=StubSandbox("42\n"))
    yield env
    env.close()


def test_it_plays_an_episode_with_everything_that_was_said_before(env):
    with flaky(lambda asked, number: (200, completion([CALL, ANSWER][number]))) as server:
        agent = agent_of(server, temperature=0.5, max_tokens=77, extra={"reasoning_effort": "low"})
        episode = play_episode(env, agent, seed=5, problem=PROBLEM)
    assert episode.correct
    assert [asked.path for asked in server.asked] == ["/v1/chat/completions"] * 2
    first, second = (asked.body for asked in server.asked)
    assert {name: first[name] for name in ("model", "temperature", "max_tokens", "reasoning_effort")} == {
        "model": "m",
        "temperature": 0.5,
        "max_tokens": 77,
        "reasoning_effort": "low",
    }
    assert [message["role"] for message in first["messages"]] == ["system", "user"]
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "user"]
    assert "42" in second["messages"][-1]["content"]
    assert first["seed"] != second["seed"]


def test_the_key_comes_from_the_environment_alone(monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret")
    with flaky(lambda asked, number: (200, completion("hi"))) as server:
        turn(agent_of(server, api_key_env="MY_KEY"))
        turn(agent_of(server, api_key_env="NO_SUCH_KEY"))
    assert server.asked[0].headers["Authorization"] == "Bearer secret"
    assert "Authorization" not in server.asked[1].headers


@pytest.mark.parametrize(
    "trouble",
    [(429, {"error": {"message": "slow down"}}, {"retry-after": "0.2"}), (503, "restarting"), (500, {}), None],
    ids=["too many requests", "unavailable", "an internal error", "a lost connection"],
)
def test_passing_trouble_is_sat_out(trouble):
    with flaky(lambda asked, number: trouble if number < 2 else (200, completion("hi"))) as server:
        began = time.monotonic()
        assert turn(agent_of(server)) == "hi"
    assert len(server.asked) == 3
    if trouble is not None and trouble[0] == 429:
        assert time.monotonic() - began > 0.4


def test_trouble_that_stays_is_told_with_the_endpoints_words():
    with (
        flaky(lambda asked, number: (429, {"error": {"message": "quota used up"}}, {"retry-after": "0"})) as server,
        pytest.raises(ServiceError, match=r"3 attempts.*429.*quota used up"),
    ):
        turn(agent_of(server))


def test_a_refusal_is_told_at_once():
    with (
        flaky(lambda asked, number: (401, {"error": {"message": "no such key"}})) as server,
        pytest.raises(ServiceError, match=r"401.*no such key"),
    ):
        turn(agent_of(server))
    assert len(server.asked) == 1


def test_an_answer_that_takes_too_long_is_not_asked_for_again():
    def slow(asked, number):
        time.sleep(1.5)
        return 200, completion("late")

    with flaky(slow) as server, pytest.raises(ServiceError, match=r"0\.3 s.*timeout_s"):
        turn(agent_of(server, timeout_s=0.3))
    assert len(server.asked) == 1


def test_nobody_at_the_address_and_no_address_at_all():
    with flaky(lambda asked, number: (200, {})) as server:
        gone = server.address
    with pytest.raises(ServiceError, match=gone):
        turn(make("openai", base_url=gone, model="m", retries=1))
    with pytest.raises(ConfigurationError, match="base_url"):
        make("openai", base_url="localhost:8000", model="m")


def test_something_else_than_a_completion_is_shown():
    with flaky(lambda asked, number: (200, {"hello": 1})) as server, pytest.raises(ServiceError, match="hello"):
        turn(agent_of(server))


@pytest.mark.slow
def test_rstar2_eval_plays_against_a_real_server(vllm_server, tmp_path):
    from rstar2_env.rollout import VllmServerEngine

    VllmServerEngine(vllm_server, wait_s=240).close()  # waits until it is there
    options = [f"base_url={vllm_server}/v1", "model=policy", "max_tokens=40", "temperature=1.0", "timeout_s=120"]
    command = [sys.executable, "-c", "from rstar2_env.cli import main; main()", "eval", "rstar2/MathTool-v0"]
    command += ["--agent", "openai", "--json"]
    command += [
        "--problems",
        "arithmetic:level=1",
        "--episodes",
        "6",
        "--workers",
        "3",
        "--out",
        str(tmp_path / "o.jsonl"),
    ]
    for option in options:
        command += ["--set", f"agent.{option}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["episodes"] == 6
    lines = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert all(line["messages"][2]["content"] for line in lines)
