"""The agent behind the Responses API: whole episodes with native calls, and reasoning that is kept between turns."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest
from flaky_server import FlakyServer, flaky
from response_replies import function_call, kinds, message, reasoning, response

import rstar2_env  # noqa: F401  # registers the environment
from rstar2_env.agents import make
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.evaluation.judges.base import make_judge
from rstar2_env.evaluation.play.episode import play_episode
from rstar2_env.problems import Problem
from rstar2_env.rewards.judges import make_reward_judge
from rstar2_env.testing.stub_sandbox import StubSandbox

PROBLEM = Problem("p", "6*7?", "42")
TOOL = "execute_python_code_with_standard_io"
ARGUMENTS = json.dumps({"code": "print(6*7)", "input": ""})
ANSWER = "<answer>\\boxed{42}</answer>"
WRITTEN = f'<tool_call>{{"name": "{TOOL}", "arguments": {ARGUMENTS}}}</tool_call>'


@pytest.fixture
def env() -> Iterator[Any]:
    made = gym.make("rstar2/MathTool-v0", sandbox=StubSandbox("42\n"))
    yield made
    made.close()


def agent_of(server: FlakyServer, **options: Any) -> Any:
    return make("openai", base_url=f"{server.address}/v1", model="m", api="responses", **{"retries": 0, **options})


def native_turns(asked: Any, number: int) -> tuple[int, Any]:
    """A call, then the answer, each after reasoning."""
    items = [function_call(TOOL, ARGUMENTS)] if number == 0 else [message(ANSWER)]
    return 200, response(reasoning(f"g{number}"), *items, id=f"resp_{number}")


@pytest.mark.parametrize(
    ("keep", "second"),
    [
        ("encrypted", ["user", "reasoning", "function_call", "function_call_output"]),
        ("stored", ["function_call_output"]),
        ("none", ["user", "function_call", "function_call_output"]),
    ],
)
def test_an_episode_with_native_calls_keeps_its_reasoning_as_declared(env: Any, keep: str, second: list[str]) -> None:
    with flaky(native_turns) as server:
        episode = play_episode(env, agent_of(server, tools="native", reasoning=keep), problem=PROBLEM)
    assert episode.correct
    assert [str(status) for status in episode.statuses] == ["ok"]
    assert episode.usage["prompt_tokens"] == 200
    first, then = (asked.body for asked in server.asked)
    assert kinds(first["input"]) == ["user"]
    assert kinds(then["input"]) == second
    assert then["input"][-1]["output"] == "42"
    assert then["instructions"] == first["instructions"]
    assert then.get("previous_response_id") == ("resp_0" if keep == "stored" else None)


def test_calls_that_are_written_as_text_are_played_and_keep_reasoning_too(env: Any) -> None:
    turns = [response(reasoning("g0"), message(WRITTEN)), response(message(ANSWER))]
    with flaky(lambda asked, number: (200, turns[number])) as server:
        episode = play_episode(env, agent_of(server), problem=PROBLEM)
    assert episode.correct
    then = server.asked[1].body
    assert "tools" not in then
    assert kinds(then["input"]) == ["user", "reasoning", "message", "user"]


def test_a_native_call_that_is_played_as_text_leaves_no_call_without_an_output(env: Any) -> None:
    with flaky(native_turns) as server:
        episode = play_episode(env, agent_of(server, tools="text"), problem=PROBLEM)
    assert episode.correct
    assert kinds(server.asked[1].body["input"]) == ["user", "assistant", "user"]


def test_a_copy_of_an_agent_continues_from_its_own_turn(env: Any) -> None:
    def reply(asked: Any, number: int) -> tuple[int, Any]:
        return 200, response(message(WRITTEN), id=f"resp_{number}")

    with flaky(reply) as server:
        agent = agent_of(server, reasoning="stored")
        agent.reset("hello", {}, seed=1)
        agent.act("hello", {})
        twin = copy.deepcopy(agent)
        agent.act("more", {})
        twin.act("other", {})
    assert [asked.body.get("previous_response_id") for asked in server.asked] == [None, "resp_0", "resp_0"]


def test_seeds_are_not_sent_and_stop_strings_are_refused() -> None:
    with flaky(lambda asked, number: (200, response(message("hi")))) as server:
        agent = agent_of(server, seeded=True)
        agent.reset("hello", {}, seed=1)
        agent.act("hello", {})
        with pytest.raises(ConfigurationError, match="does not support stop strings"):
            agent_of(server, stop=["x"])
        with pytest.raises(ConfigurationError, match="does not support stop strings"):
            agent_of(server, extra={"stop": ["x"]})
    assert "seed" not in server.asked[0].body


def test_a_cache_is_refused_with_stored_responses_and_works_with_encrypted_ones(env: Any, tmp_path: Any) -> None:
    with flaky(native_turns) as server:
        with pytest.raises(ConfigurationError, match="cannot be combined with a cache"):
            agent_of(server, reasoning="stored", cache=str(tmp_path / "c"))
        options = {"tools": "native", "cache": str(tmp_path / "cache.sqlite")}
        for _ in range(2):
            assert play_episode(env, agent_of(server, **options), problem=PROBLEM).correct
    assert len(server.asked) == 2


def test_stored_reasoning_is_refused_with_chat_completions() -> None:
    with pytest.raises(ConfigurationError, match="is for the Responses API: set api='responses' too"):
        make("openai", base_url="http://127.0.0.1:9/v1", model="m", reasoning="stored")


def test_the_judge_of_rewards_speaks_it() -> None:
    import asyncio

    with flaky(lambda asked, number: (200, response(message("CORRECT")))) as server:
        judge = make_reward_judge(f"model:url={server.address}/v1,model=m,api=responses,max_tokens=7")
        assert asyncio.run(judge("Is it right?")) == "CORRECT"  # type: ignore[arg-type]  # a coroutine
    body = server.asked[0].body
    assert server.asked[0].path == "/v1/responses"
    assert (body["max_output_tokens"], body["store"], kinds(body["input"])) == (7, False, ["user"])


def test_the_judge_of_chains_speaks_it(env: Any) -> None:
    from rstar2_env.evaluation.judges.base import judge_of

    turns = [response(message(ANSWER)), *[response(message("CORRECT"))] * 3]
    with flaky(lambda asked, number: (200, turns[number])) as server:
        episode = play_episode(env, agent_of(server), problem=PROBLEM)
        judge = make_judge(f"model:base_url={server.address}/v1,model=m,api=responses")
        assert judge_of(judge, "6*7?", "42", episode) is True
    assert {asked.path for asked in server.asked} == {"/v1/responses"}
    assert "seed" not in server.asked[1].body
