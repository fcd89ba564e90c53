"""The spans and metrics of episodes, turns, calls and jobs: names, parents, attributes, and what is left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs the extra otel")

from flaky_server import flaky
from opentelemetry.trace import SpanKind, StatusCode
from recorded_spans import recorded_spans
from scripted_engine import SAMPLING, call, first_times, math_tool, scripted

from rstar2_env.core.errors import ServiceError
from rstar2_env.core.net.chat_endpoint import ChatEndpoint
from rstar2_env.core.secret import Secret
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.telemetry import tool_span
from rstar2_env.evaluation.play.episode import play_episode
from rstar2_env.rollout import EpisodeRequest, Player

ANSWER = "<answer>\\boxed{42}</answer>"
REQUEST = EpisodeRequest(0, 1, {}, 1)


def play(policy: Any, count: int = 1, *, content: bool = False, **options: Any) -> Any:
    engine = scripted(policy)
    options = {"model": "tiny", "provider": "transformers", **options}
    with (
        recorded_spans(content=content) as found,
        Player(math_tool(), engine, engine.codec, sampling=SAMPLING, **options) as player,
    ):
        episodes = player.play([REQUEST] * count)
    return found, episodes


def test_an_episode_is_an_agent_with_its_turns_and_calls_below_it() -> None:
    found, _ = play(first_times(call("print(6*7)"), 1, ANSWER))
    tool = "execute_tool execute_python_code_with_standard_io"
    assert found.parents() == {
        "invoke_agent policy": {""},
        "chat tiny": {"invoke_agent policy"},
        tool: {"invoke_agent policy"},
    }
    assert [one.name for one in found.named("")] == ["invoke_agent policy", "chat tiny", tool, "chat tiny"]


def test_episodes_that_are_played_together_keep_their_own_spans() -> None:
    found, _ = play(first_times(call("print(6*7)"), 3, ANSWER), 3)
    traces = {one.context.trace_id for one in found.named("invoke_agent")}
    assert len(traces) == 3
    for trace in traces:
        assert len([one for one in found.named("execute_tool") if one.context.trace_id == trace]) == 1
        assert len([one for one in found.named("chat") if one.context.trace_id == trace]) == 2


def test_an_episode_tells_how_it_ended_and_its_tokens() -> None:
    found, (episode,) = play(first_times(call("1/0"), 1, ANSWER))
    (span,) = found.named("invoke_agent")
    attributes = dict(span.attributes or {})
    assert attributes.pop("gen_ai.usage.input_tokens") == sum(
        len(episode.prompt_ids) + turn.start for turn in episode.steps
    )
    assert attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "transformers",
        "gen_ai.agent.name": "policy",
        "gen_ai.request.model": "tiny",
        "gen_ai.usage.output_tokens": episode.policy_tokens,
        "rstar2.environment.id": "rstar2/MathTool-v0",
        "rstar2.episode.end": "answered",
        "rstar2.episode.correct": True,
        "rstar2.episode.reward": 1.0,
        "rstar2.episode.turns": 2,
        "rstar2.episode.tool_calls": 1,
        "rstar2.episode.tool_errors": 1,
        "rstar2.episode.group": 0,
    }
    assert (span.kind, span.status.status_code) == (SpanKind.INTERNAL, StatusCode.UNSET)


def test_a_turn_tells_its_tokens_and_its_settings() -> None:
    found, (episode,) = play(lambda text: ANSWER)
    (span,) = found.named("chat")
    attributes = dict(span.attributes or {})
    assert attributes["gen_ai.usage.input_tokens"] == len(episode.prompt_ids)
    assert attributes["gen_ai.usage.output_tokens"] == episode.policy_tokens
    assert attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert attributes["gen_ai.request.temperature"] == 1.0
    assert attributes["gen_ai.request.max_tokens"] > 0


@pytest.mark.parametrize(
    ("turn", "status", "name", "exception"),
    [
        (call("1/0"), "exception", "execute_tool execute_python_code_with_standard_io", "ZeroDivisionError"),
        (call("class Secret1(Exception): pass\nraise Secret1"), "exception", None, "_OTHER"),
        (call("1 +"), "syntax_error", None, None),
        ("<tool_call>\n{broken\n</tool_call>", "malformed", "execute_tool", None),
        ('<tool_call>\n{"name": "my text", "arguments": {}}\n</tool_call>', "unknown_tool", "execute_tool", None),
    ],
)
def test_a_call_that_fails_tells_the_kind_and_nothing_that_the_policy_named(
    turn: str, status: str, name: str | None, exception: str | None
) -> None:
    found, _ = play(first_times(turn, 1, ANSWER))
    (span,) = found.named("execute_tool")
    attributes = dict(span.attributes or {})
    assert (attributes["error.type"], attributes["rstar2.tool.status"]) == (status, status)
    assert attributes.get("rstar2.tool.exception") == exception
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
    assert name is None or span.name == name
    assert "Secret1" not in span.to_json()
    assert "my text" not in span.to_json()


@pytest.mark.parametrize(("status", "failed"), [(ToolStatus.EMPTY, False), (ToolStatus.UNAVAILABLE, True)])
def test_a_call_without_output_is_no_failure_and_an_unavailable_one_is(status: ToolStatus, failed: bool) -> None:
    with recorded_spans() as found, tool_span("python") as span:
        span.tool_result(status, None, False, {}, "")
    assert ("error.type" in (found.spans[0].attributes or {})) is failed


def test_an_episode_that_the_infrastructure_lost_is_a_failure_without_its_traceback() -> None:
    def broken(text: str) -> str:
        raise OSError("the text of a prompt")

    found, (episode,) = play(broken, max_failed=1.0)
    assert episode.failed
    (agent,), (turn,) = found.named("invoke_agent"), found.named("chat")
    assert (agent.attributes or {})["error.type"] == "unavailable"
    assert (turn.attributes or {})["error.type"] == "OSError"
    assert "the text of a prompt" not in agent.to_json() + turn.to_json()
    ((attributes, _),) = found.points("rstar2.rollout.episodes")
    assert attributes["rstar2.episode.end"] == "unavailable"
    assert "rstar2.rollout.reward" not in found.metrics()


TEXTS = ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result")


def test_no_text_is_recorded_unless_it_is_requested() -> None:
    found, _ = play(first_times(call("print('q' * 3)"), 1, ANSWER))
    whole = "".join(one.to_json() for one in found.spans)
    assert not any(name in whole for name in TEXTS)
    assert not any(text in whole for text in ("6*7", "qqq", "boxed"))


def test_texts_that_are_requested_are_in_the_standard_form() -> None:
    found, _ = play(first_times(call("print('q' * 3)"), 1, ANSWER), content=True)
    (tool,) = found.named("execute_tool")
    second = found.named("chat")[1]
    assert "qqq" in (tool.attributes or {})["gen_ai.tool.call.result"]
    assert '"code"' in (tool.attributes or {})["gen_ai.tool.call.arguments"]
    asked = json.loads((second.attributes or {})["gen_ai.input.messages"])
    assert [message["role"] for message in asked] == ["system", "user", "assistant", "user"]
    assert asked[1]["parts"] == [{"type": "text", "content": "6*7?"}] or "6*7?" in asked[1]["parts"][0]["content"]
    (said,) = json.loads((second.attributes or {})["gen_ai.output.messages"])
    assert (said["role"], said["finish_reason"]) == ("assistant", "stop")
    assert ANSWER in said["parts"][0]["content"]


def test_a_secret_in_a_text_is_not_recorded() -> None:
    key = Secret("sk-very-secret-1")
    with recorded_spans(content=True) as found, tool_span("python") as span:
        span.tool_result(ToolStatus.OK, None, False, {"code": key.reveal()}, f"it is {key.reveal()} \ud800")
    assert key.reveal() not in found.spans[0].to_json()
    assert (found.spans[0].attributes or {})["gen_ai.tool.call.result"].startswith("it is ***")


def completion(text: str, **usage: int) -> tuple[int, Any]:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return 200, {"choices": [choice], "usage": usage}


def test_a_request_to_an_endpoint_is_a_client_span_with_its_address() -> None:
    answers = [(503, {}, {"retry-after": "0"}), completion("hi", prompt_tokens=7, completion_tokens=2)]
    with flaky(lambda asked, number: answers[number]) as server, recorded_spans() as found:
        ChatEndpoint(f"{server.address}/v1", retries=2).complete([{"role": "user", "content": "x"}], model="m", seed=3)
    (span,) = found.spans
    port = int(server.address.rpartition(":")[2])
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.request.seed": 3,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 2,
        "server.address": "127.0.0.1",
        "server.port": port,
    }
    assert (span.name, span.kind) == ("chat m", SpanKind.CLIENT)


def test_a_request_that_is_refused_fails_without_the_words_of_the_server() -> None:
    refuse = (400, {"error": {"message": "your prompt was: hello"}})
    with flaky(lambda asked, number: refuse) as server, recorded_spans() as found, pytest.raises(ServiceError):
        ChatEndpoint(f"{server.address}/v1").complete([{"role": "user", "content": "hello"}], model="m")
    (span,) = found.spans
    assert (span.attributes or {})["error.type"] == "ServiceError"
    assert "hello" not in span.to_json()


class Once:
    def reset(self, observation: str, info: Any, *, seed: int) -> None: ...

    def act(self, observation: str, info: Any) -> str:
        return ANSWER


def test_an_agent_is_named_by_its_class() -> None:
    with recorded_spans() as found:
        env = math_tool()()
        play_episode(env, Once(), seed=1)
        env.close()
    (span,) = found.spans
    assert span.name == "invoke_agent Once"
    assert (span.attributes or {})["rstar2.episode.end"] == "answered"


def test_the_metrics_count_episodes_turns_calls_tokens_and_jobs() -> None:
    found, episodes = play(first_times(call("1/0"), 2, ANSWER), 2)
    durations = {
        (point["gen_ai.operation.name"], point.get("error.type")): data.count
        for point, data in found.points("gen_ai.client.operation.duration")
    }
    assert durations == {("invoke_agent", None): 2, ("chat", None): 4, ("execute_tool", "exception"): 2}
    tokens = {point["gen_ai.token.type"]: data.sum for point, data in found.points("gen_ai.client.token.usage")}
    assert tokens["output"] == sum(episode.policy_tokens for episode in episodes)
    ((ended, data),) = found.points("rstar2.rollout.episodes")
    assert (ended["rstar2.episode.end"], ended["rstar2.episode.correct"], data.value) == ("answered", True, 2)
    ((job, data),) = found.points("rstar2.sandbox.job.duration")
    assert (job["rstar2.tool.status"], data.count) == ("exception", 2)
    assert job["rstar2.sandbox.provider"] == "LocalSandbox"
