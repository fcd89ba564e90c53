"""The record of one episode: what a rollout notes, and what selectors and logs read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.status import ToolStatus


def call(status: str, *, injected: bool = False) -> dict[str, Any]:
    return {"name": "tool", "status": status, "injected": injected}


def noted(*steps: dict[str, Any]) -> Episode:
    episode = Episode()
    for info in steps:
        episode.note(info)
    return episode


def test_the_statuses_of_all_steps_are_kept_in_order() -> None:
    episode = noted({"tool_calls": [call("ok"), call("timeout")]}, {}, {"tool_calls": [call("empty")]})
    assert episode.statuses == [ToolStatus.OK, ToolStatus.TIMEOUT, ToolStatus.EMPTY]
    assert episode.error_share == pytest.approx(1 / 3)
    assert episode.tool_calls == 3


def test_an_injected_fault_is_kept_apart_from_the_policys_calls() -> None:
    episode = noted({"tool_calls": [call("ok"), call("timeout", injected=True)]})
    assert (episode.statuses, episode.injected) == ([ToolStatus.OK], [ToolStatus.TIMEOUT])
    assert (episode.error_share, episode.tool_calls) == (0.0, 1)


def test_an_unavailable_call_is_in_neither_numerator_nor_denominator() -> None:
    episode = noted({"tool_calls": [call("exception"), call("unavailable"), call("ok")]})
    assert (episode.error_share, episode.tool_calls) == (0.5, 2)
    assert noted({"tool_calls": [call("unavailable")]}).error_share is None
    assert Episode().error_share is None


@pytest.mark.parametrize("status", list(ToolStatus))
def test_every_status_counts_as_the_contract_says(status: ToolStatus) -> None:
    episode = noted({"tool_calls": [call(str(status))]})
    harmless = status in (ToolStatus.OK, ToolStatus.EMPTY)
    assert episode.error_share == (None if status is ToolStatus.UNAVAILABLE else 0.0 if harmless else 1.0)


def test_a_status_outside_the_closed_list_is_an_error() -> None:
    with pytest.raises(ValueError, match="sulking"):
        noted({"tool_calls": [call("sulking")]})


def test_the_answer_and_its_tags_come_with_the_last_step() -> None:
    episode = noted({"tool_calls": []}, {"answer": "42", "answer_tags": 2}, {})
    assert (episode.answer, episode.answer_tags) == ("42", 2)


def test_only_an_episode_that_failed_by_our_own_fault_is_not_available() -> None:
    for end in ("answered", "no_answer", "turns", "tokens", "time", "terminated", "truncated", ""):
        assert Episode(end=end).available
    assert not Episode(end="unavailable").available


def test_the_policys_tokens_are_those_of_the_mask() -> None:
    assert Episode(completion_ids=[1, 2, 3], mask=[1, 0, 1]).policy_tokens == 2
    assert Episode().policy_tokens == 0


def test_the_record_is_json_without_token_ids_and_holds_all_else() -> None:
    episode = Episode(
        group=2,
        seed=2**62,
        messages=[Message("user", "é?")],
        prompt_ids=[1],
        completion_ids=[2],
        mask=[1],
        logprobs=[-0.5],
        statuses=[ToolStatus.OK],
        injected=[ToolStatus.TIMEOUT],
        end="answered",
    )
    record = json.loads(json.dumps(episode.record()))
    assert record["messages"] == [{"role": "user", "content": "é?"}]
    assert (record["statuses"], record["injected"]) == (["ok"], ["timeout"])
    assert (record["seed"], record["policy_tokens"]) == (2**62, 1)
    left_out = {"prompt_ids", "completion_ids", "mask", "logprobs"}
    assert set(record) == {*Episode.__dataclass_fields__} - left_out | {"policy_tokens"}


def test_two_episodes_share_nothing() -> None:
    first, second = Episode(), Episode()
    first.statuses.append(ToolStatus.OK)
    first.completion_ids.append(1)
    assert (second.statuses, second.completion_ids) == ([], [])
