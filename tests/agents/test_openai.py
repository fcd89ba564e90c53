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
from rstar2_env.core.errors import ConfigurationError, EndpointBudgetError, ServiceError, UnusableReplyError
from rstar2_env.evaluation.play.episode import play_episode
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


USED = {"prompt_tokens": 100, "completion_tokens": 20}


def completion(text, *, finish="stop", usage=USED, **message):
    choice = {"message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    return {"choices": [choice], "usage": usage}


def native(arguments, name="execute_python_code_with_standard_io", call_id="c1"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def native_calls(*calls, text=None):
    return completion(text, finish="tool_calls", tool_calls=list(calls))


def agent_of(server, **options):
    return make("openai", base_url=f"{server.address}/v1", model="m", **{"retries": 2, "timeout_s": 120, **options})


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


UNUSABLE = {
    "no text at all": (completion(None), "no_text"),
    "blanks": (completion(" \n"), "no_text"),
    "reasoning without a text": (completion(None, reasoning_content="hmm"), "no_text"),
    "cut": (completion("I think", finish="length"), "cut"),
    "a refusal in words": (completion(None, refusal="I cannot help with that"), "refused"),
    "a filtered reply": (completion("", finish="content_filter"), "refused"),
}


@pytest.mark.parametrize(("answer", "end"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_reply_that_cannot_be_played_is_no_answer_of_the_models(env, answer, end):
    with flaky(lambda asked, number: (200, answer)) as server:
        episode = play_episode(env, agent_of(server), seed=5, problem=PROBLEM)
    assert (episode.end, episode.available) == (end, False)
    assert episode.usage["completion_tokens"] == 20, "it was paid for"


def test_a_cut_reply_is_played_where_that_is_wanted(env):
    with flaky(lambda asked, number: (200, completion("I think", finish="length"))) as server:
        episode = play_episode(env, agent_of(server, cut="play"), seed=5, problem=PROBLEM)
    assert (episode.end, episode.available) == ("no_answer", True)


@pytest.mark.parametrize(
    ("message", "end"),
    [
        ("This model's maximum context length is 4096 tokens", "cut"),
        ("blocked: content_filter", "refused"),
    ],
)
def test_a_conversation_that_the_endpoint_does_not_take_ends_alone(env, message, end):
    answers = [(200, completion(CALL)), (400, {"error": {"message": message}})]
    with flaky(lambda asked, number: answers[number]) as server:
        episode = play_episode(env, agent_of(server), seed=5, problem=PROBLEM)
    assert (episode.end, episode.turns) == (end, 1)


def test_a_request_that_is_too_long_from_the_start_is_a_mistake_to_tell():
    refused = (400, {"error": {"message": "maximum context length is 64, you requested 9999 tokens"}})
    with flaky(lambda asked, number: refused) as server, pytest.raises(ServiceError, match="you requested 9999"):
        turn(agent_of(server, max_tokens=9999))


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ("42\n", "42"),
        # One that looks like two cannot be told apart from two, and is shown as the dialect wrote it.
        ("a\n</tool_response>\n<tool_response>\nb\n", None),
    ],
)
def test_the_result_of_one_native_call_is_shown_without_the_dialects_marks(output, shown):
    env = gym.make("rstar2/MathTool-v0", sandbox=StubSandbox(output))
    answers = [native_calls(native(json.dumps(ARGUMENTS))), completion(ANSWER)]
    with flaky(lambda asked, number: (200, answers[number])) as server:
        episode = play_episode(env, agent_of(server, tools="native"), seed=5, problem=PROBLEM)
    env.close()
    assert episode.correct, episode
    assert server.asked[1].body["messages"][-1]["content"] == (shown or episode.messages[3].content)


def test_native_calls_are_played_as_the_dialects_and_their_results_go_back_natively(env):
    calls = native_calls(native(json.dumps(ARGUMENTS)), native(json.dumps(ARGUMENTS), call_id="c2"))
    with flaky(lambda asked, number: (200, [calls, completion(ANSWER)][number])) as server:
        episode = play_episode(env, agent_of(server, tools="native"), seed=5, problem=PROBLEM)
    assert episode.correct
    assert [str(status) for status in episode.statuses] == ["ok", "ok"]
    first, second = (asked.body for asked in server.asked)
    assert [tool["function"]["name"] for tool in first["tools"]] == ["execute_python_code_with_standard_io"]
    assert "<tool_call>" not in first["messages"][0]["content"], "the endpoint has its own way of calls"
    said, *results = second["messages"][2:]
    assert (said["content"], [call["id"] for call in said["tool_calls"]]) == (None, ["c1", "c2"])
    assert [(one["role"], one["tool_call_id"], one["content"]) for one in results] == [
        ("tool", "c1", "42"),
        ("tool", "c2", "42"),
    ]


@pytest.mark.parametrize("mode", ["native", "text"])
def test_a_native_call_whose_arguments_do_not_parse_is_a_malformed_one(env, mode):
    answers = [native_calls(native('{"code": "print(1'), text="Let me see."), completion(ANSWER)]
    with flaky(lambda asked, number: (200, answers[number])) as server:
        episode = play_episode(env, agent_of(server, tools=mode), seed=5, problem=PROBLEM)
    assert [str(status) for status in episode.statuses] == ["malformed"]
    assert episode.messages[2].content.startswith("Let me see.\n<tool_call>")
    assert episode.correct


def test_native_calls_that_nobody_asked_for_are_played_too(env):
    answers = [native_calls(native(json.dumps(ARGUMENTS))), completion(ANSWER)]
    with flaky(lambda asked, number: (200, answers[number])) as server:
        episode = play_episode(env, agent_of(server), seed=5, problem=PROBLEM)
    assert (episode.correct, len(episode.statuses)) == (True, 1)
    assert "tools" not in server.asked[0].body
    assert server.asked[1].body["messages"][2] == {"role": "assistant", "content": episode.messages[2].content}


def test_a_dialect_that_cannot_write_every_call_is_refused_for_native_calls():
    with pytest.raises(ConfigurationError, match="'fenced' cannot express every tool call"):
        make("openai", base_url="http://127.0.0.1:1/v1", model="m", tools="native", dialect="fenced")


def test_tokens_and_cost_are_kept_with_the_episode(env):
    limits = {"input_price": 3.0, "output_price": 15.0}
    with flaky(lambda asked, number: (200, completion([CALL, ANSWER][number]))) as server:
        episode = play_episode(env, agent_of(server, limits=limits), seed=5, problem=PROBLEM)
    cost = episode.usage.pop("cost")
    assert cost == pytest.approx(2 * (100 * 3 + 20 * 15) / 1e6)
    assert episode.usage == {"requests": 2, "cached": 0, "prompt_tokens": 200, "completion_tokens": 40}


def test_a_spent_budget_stops_all_agents_of_the_endpoint():
    with flaky(lambda asked, number: (200, completion("hi"))) as server:
        agents = [agent_of(server, limits={"max_tokens": 200}) for _ in range(2)]
        turn(agents[0])
        turn(agents[1])
        with pytest.raises(EndpointBudgetError, match=r"is reached: 240 tokens were used.*limits\.max_tokens"):
            turn(agents[0])
    assert len(server.asked) == 2


def test_what_was_asked_before_is_neither_sent_nor_paid_again(tmp_path):
    def one(server, seed):
        agent = agent_of(server, cache=str(tmp_path / "cache.sqlite"), seeded=False)
        agent.reset("hello", {}, seed=seed)
        return agent.act("hello", {}), agent.usage

    with flaky(lambda asked, number: (200, completion(f"reply {number}"))) as server:
        first, usage = one(server, 1)
        again, paid = one(server, 1)
        assert one(server, 2)[0] == "reply 1", "another episode has a reply of its own"
    assert (first, again) == ("reply 0", "reply 0")
    assert (usage["cached"], paid["cached"], paid["cost"]) == (0, 1, 0)


def test_a_reply_that_cannot_be_played_is_asked_for_again_in_spite_of_the_cache(tmp_path):
    answers = [completion(None), completion("hi")]
    with flaky(lambda asked, number: (200, answers[number])) as server:
        agent = agent_of(server, cache=str(tmp_path / "cache.sqlite"))
        with pytest.raises(UnusableReplyError):
            turn(agent)
        assert turn(agent) == "hi"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_rstar2_eval_plays_against_a_real_server(vllm_server, tmp_path):
    from rstar2_env.rollout import VllmServerEngine

    VllmServerEngine(vllm_server, start_timeout_s=400).close()  # waits until it is there
    options = [f"base_url={vllm_server}/v1", "model=policy", "max_tokens=40", "temperature=1.0", "timeout_s=120"]
    options += ["cut=play", f"cache={tmp_path / 'cache.sqlite'}"]
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
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["episodes"] == 6
    lines = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert all(line["messages"][2]["content"] for line in lines)
    assert all(line["policy_tokens"] == line["usage"]["completion_tokens"] > 0 for line in lines)
