"""Rollouts of NeMo Gym become episodes and traces; the rows have the shape of NVIDIA's published example rollouts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_runner import run

from rstar2_env.adapters.atif.files import FORMATS
from rstar2_env.core.errors import RecordFormatError
from rstar2_env.core.run_folder import read_run
from rstar2_env.traces.reading import read_traces

READ = FORMATS["nemo-gym"]


def said(text: str, role: str = "assistant", **more: Any) -> dict[str, Any]:
    content = [{"annotations": [], "text": text, "type": "output_text", "logprobs": []}]
    return {"id": "msg_1", "content": content, "role": role, "status": "completed", "type": "message", **more}


def thought(text: str) -> dict[str, Any]:
    return {"id": "rs_1", "summary": [{"text": text, "type": "summary_text"}], "type": "reasoning"}


def called(call_id: str, arguments: str, name: str = "add", **more: Any) -> dict[str, Any]:
    return {"arguments": arguments, "call_id": call_id, "name": name, "type": "function_call", "id": "fc_1", **more}


def returned(call_id: str, output: str) -> dict[str, Any]:
    return {"call_id": call_id, "output": output, "type": "function_call_output", "id": None, "status": None}


def rollout(*output: dict[str, Any], given: Any = "What is 2 + 3?", reward: float = 1.0, **more: Any) -> dict[str, Any]:
    response = {"id": "resp_1", "object": "response", "error": None, "incomplete_details": None, "output": list(output)}
    return {
        "responses_create_params": {"input": given, "instructions": None, "tools": []},
        "response": {**response, **more.pop("response", {})},
        "reward": reward,
        "_ng_task_index": 4,
        **more,
    }


def messages(row: dict[str, Any]) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in READ(row).entry.episode.messages]


CALL = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>'


def test_an_episode_has_the_prompt_the_calls_the_results_and_the_answer() -> None:
    given = [{"content": "Be brief.", "role": "developer"}, {"content": "2 + 3?", "role": "user", "type": "message"}]
    row = rollout(
        thought("I add."), said("So:"), called("c1", '{"a": 2, "b": 3}'), returned("c1", "5"), said("5"), given=given
    )
    assert messages(row) == [
        ("system", "Be brief."),
        ("user", "2 + 3?"),
        ("assistant", f"<reason>\nI add.\n</reason>\nSo:\n{CALL}"),
        ("user", "<tool_response>\n5\n</tool_response>"),
        ("assistant", "5"),
    ]


def test_parallel_calls_are_one_turn_and_later_calls_another() -> None:
    call, again = called("c1", '{"a": 2, "b": 3}'), called("c3", '{"a": 2, "b": 3}')
    row = rollout(
        call, {**call, "call_id": "c2"}, returned("c1", "5"), returned("c2", "five"), again, returned("c3", "6")
    )
    assert messages(row)[1:] == [
        ("assistant", f"{CALL}\n{CALL}"),
        ("user", "<tool_response>\n5\n</tool_response>\n<tool_response>\nfive\n</tool_response>"),
        ("assistant", CALL),
        ("user", "<tool_response>\n6\n</tool_response>"),
    ]


def test_a_user_that_speaks_between_turns_is_kept() -> None:
    row = rollout(said("Water is H2O."), {"content": "How many atoms?", "role": "user", "type": "message"}, said("3"))
    assert [role for role, _ in messages(row)] == ["user", "assistant", "user", "assistant"]


def test_arguments_that_are_not_json_stay_as_they_were_written() -> None:
    (_, turn) = messages(rollout(called("c1", '{"a": 2,'), returned("c1", "bad")))[1]
    assert turn == '<tool_call>{"name": "add", "arguments": {"a": 2,}</tool_call>'


def test_replies_in_the_prompt_are_context_and_not_trained_on() -> None:
    given = [{"content": "Hi", "role": "user"}, {"content": "Hello", "role": "assistant"}, said("ok?", role="user")]
    assert READ(rollout(said("5"), given=given)).trained == (False, True)


def test_the_tokens_of_each_reply_are_kept() -> None:
    one = {"prompt_token_ids": [7, 8], "generation_token_ids": [1, 2], "generation_log_probs": [-0.5, -0.25]}
    two = {
        "prompt_token_ids": [7, 8, 1, 2, 3],
        "generation_token_ids": [4],
        "generation_log_probs": [-1.0],
    }
    (tokens,) = READ(rollout(called("c1", "{}", **one), returned("c1", "5"), said("5", **two))).tokens
    assert (tokens.prompt_ids, tokens.completion_ids, tokens.mask) == ([7, 8], [1, 2, 3, 4], [1, 1, 0, 1])
    assert tokens.logprobs == [-0.5, -0.25, 0.0, -1.0]


@pytest.mark.parametrize(
    ("response", "end", "available"),
    [
        ({}, "terminated", True),
        ({"incomplete_details": {"reason": "max_output_tokens"}}, "tokens", True),
        ({"incomplete_details": {"reason": "content_filter"}}, "refused", False),
        ({"error": {"code": "server_error", "message": "overloaded"}}, "unavailable", False),
    ],
)
def test_the_end_of_the_response_is_the_end_of_the_episode(response: Any, end: str, available: bool) -> None:
    episode = READ(rollout(said("5"), response=response)).entry.episode
    assert (episode.end, episode.available) == (end, available)
    assert (episode.error == "overloaded") is (end == "unavailable")


@pytest.mark.parametrize(
    ("fields", "end"),
    [
        ({"truncated": True, "terminated": False}, "truncated"),
        ({"truncated": True, "terminated": True}, "terminated"),
        ({"mask_sample": True}, "unavailable"),
        ({"instance_config": {"mask_sample": True}}, "unavailable"),
        ({"instance_config": {"mask_sample": True}, "mask_sample": False}, "terminated"),
    ],
)
def test_the_end_that_the_environment_states_is_the_end_of_the_episode(fields: Any, end: str) -> None:
    episode = READ(rollout(said("5"), failure_reason="the judge timed out", **fields)).entry.episode
    assert (episode.end, episode.error) == (end, "the judge timed out" if end == "unavailable" else None)


def test_an_output_of_transitions_is_the_conversation_of_the_last_one() -> None:
    asked = {"content": "2 + 3?", "role": "user", "type": "message"}
    first = [asked, called("c1", '{"a": 2, "b": 3}'), returned("c1", "5")]
    row = rollout(given=[], response={"output": [first, [*first, said("5")]]})
    assert [role for role, _ in messages(row)] == ["user", "assistant", "user", "assistant"]
    wrong = rollout(given=[], response={"output": [first, [*first, {"type": "web_search_call"}]]})
    with pytest.raises(RecordFormatError, match=r"^response\.output\[1\]\[3\]\.type: expected message"):
        READ(wrong)
    rewritten = rollout(given=[], response={"output": [first, [asked, said("5")]]})
    with pytest.raises(RecordFormatError, match=r"^response\.output\[1\]: .* the history was rewritten"):
        READ(rewritten)


def test_the_task_the_reward_and_the_expected_answer_are_kept() -> None:
    entry = READ(rollout(said("5"), reward=0.5, expected_answer=5)).entry
    assert (entry.episode.problem_id, entry.episode.reward, entry.more["gold"]) == ("4", 0.5, "5")
    assert READ(rollout(said("5"), uuid="u-1")).entry.episode.problem_id == "u-1"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"responses_create_params": {}, "reward": 1.0}, r"^response: the field is missing"),
        ({"responses_create_params": {}, "response": {}}, r"^reward: the field is missing"),
        (rollout(said("5"), reward="high"), r"^reward: expected a number, got 'high'"),
        (rollout({"type": "web_search_call"}), r"^response\.output\[0\]\.type: expected message, reasoning"),
        (
            rollout(given=[{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]),
            r"^responses_create_params\.input\[0\]\.content\[0\]\.type: .* got 'input_image': episodes hold text only",
        ),
        (rollout(called("c1", "{}") | {"name": None}), r"^response\.output\[0\]\.name: the field is missing"),
        (rollout(returned("c9", "5")), r"^response\.output\[0\]\.call_id: .*'c9' must follow"),
        (rollout(said("5", role="critic")), r"^response\.output\[0\]\.role: expected one of system"),
        ([1], "expected a rollout of NeMo Gym"),
        ({"schema_version": "ATIF-v1.8"}, "got a trajectory of ATIF .*: use --from atif"),
    ],
)
def test_a_row_that_is_not_a_rollout_is_refused_with_the_field(row: Any, words: str) -> None:
    with pytest.raises(RecordFormatError, match=words):
        READ(row)


def test_a_rollout_that_is_read_as_a_trajectory_names_the_format() -> None:
    with pytest.raises(RecordFormatError, match=r"got a rollout of NeMo Gym .*: use --from nemo-gym"):
        FORMATS["atif"](rollout(said("5")))


def test_the_command_writes_episodes_and_a_cold_start(tmp_path: Path) -> None:
    rows = [rollout(said("5")), rollout(said("6"), reward=0.0)]
    (tmp_path / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("traces", "--from", "nemo-gym", tmp_path / "rollouts.jsonl", "--out", tmp_path / "t.jsonl")
    assert done.exit_code == 0, done.stderr
    (trace,) = read_traces(tmp_path / "t.jsonl")
    assert trace["messages"][-1]["content"] == "5"
    assert [entry.episode.reward for entry in read_run(tmp_path / "t.episodes.jsonl").held_out()] == [1.0, 0.0]


def test_the_command_names_file_line_and_field(tmp_path: Path) -> None:
    rows = [rollout(said("5")), {"responses_create_params": {}}]
    (tmp_path / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("traces", "--from", "nemo-gym", tmp_path / "rollouts.jsonl", "--out", tmp_path / "t.jsonl")
    assert done.exit_code == 2
    assert "rollouts.jsonl, line 2: response: the field is missing" in " ".join(done.stderr.split())
    assert not (tmp_path / "t.jsonl").exists()
