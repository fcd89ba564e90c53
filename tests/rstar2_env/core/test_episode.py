"""An episode: how it is begun, goes on and ends, and that its record gives it back."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.errors import RecordFormatError
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn


def call(status: str, *, injected: bool = False) -> dict[str, Any]:
    return {"name": "tool", "status": status, "injected": injected}


def noted(*steps: dict[str, Any]) -> Episode:
    episode = Episode()
    for info in steps:
        episode.observe(0.0, False, False, info)
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


@pytest.mark.parametrize("end", ["no_text", "cut", "refused"])
def test_an_episode_whose_reply_could_not_be_played_does_not_count_and_has_not_failed(end: Any) -> None:
    episode = Episode(reward=1.0, correct=True)
    episode.void(end, "the reply has no text")
    assert (episode.available, episode.unusable, episode.failed) == (False, True, False)
    assert (episode.reward, episode.correct, episode.error) == (0.0, False, "the reply has no text")


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
    left_out = {"prompt_ids", "shown_ids", "completion_ids", "mask", "logprobs", "recorded_tokens", "measured"}
    assert set(record) == {*Episode.__dataclass_fields__} - left_out | {"policy_tokens"}


def test_two_episodes_share_nothing() -> None:
    first, second = Episode(), Episode()
    first.statuses.append(ToolStatus.OK)
    first.completion_ids.append(1)
    assert (second.statuses, second.completion_ids) == ([], [])


def test_it_begins_with_what_reset_returned() -> None:
    episode = Episode(seed=3).begin("What is 1 + 1?", {"problem_id": 7, "system": "Be good.", "tools": []})
    assert episode == Episode(
        seed=3, problem_id="7", messages=[Message("system", "Be good."), Message("user", "What is 1 + 1?")]
    )
    for info in ({}, {"system": ""}, {"system": None}):
        assert Episode().begin("hi", info).messages == [Message("user", "hi")]


def test_a_step_adds_the_turn_and_what_came_of_it() -> None:
    episode = Episode().begin("hi", {})
    assert not episode.step("one", ("shown", np.float32(0.5), False, False, {"role": "tool", "tool_calls": []}))
    assert episode.step("two", ("", 1, True, False, {"end": "answered", "correct": False, "answer": "2"}))
    said = [Message("assistant", "one"), Message("tool", "shown"), Message("assistant", "two")]
    assert episode.messages == [Message("user", "hi"), *said]
    assert (episode.reward, type(episode.reward), episode.turns) == (1.5, float, 2)
    assert (episode.end, episode.correct, episode.answer) == ("answered", False, "2")


@pytest.mark.parametrize(("terminated", "end"), [(True, "terminated"), (False, "truncated")])
@pytest.mark.parametrize("reward", [0.0, 0.25])
def test_an_environment_that_does_not_say_ends_by_its_flag_and_is_solved_by_a_positive_return(
    terminated: bool, end: str, reward: float
) -> None:
    episode = Episode().begin("hi", {})
    assert not episode.step("one", ("go on", reward, False, False, {}))
    assert episode.step("two", ("bye", 0.0, terminated, not terminated, {}))
    assert (episode.end, episode.correct) == (end, reward > 0)
    assert episode.messages[-1] == Message("user", "bye")


def test_the_parts_of_a_step_are_the_step() -> None:
    whole, parts = Episode().begin("hi", {}), Episode().begin("hi", {})
    info = {"role": "tool", "tool_calls": [call("ok")], "answer_tags": 1}
    assert not whole.step("one", ("shown", 1.0, False, False, info))
    parts.act("one")
    assert not parts.observe(1.0, False, False, info)
    parts.show("shown", info)
    assert whole == parts


def test_every_turn_is_kept_with_what_it_saw_and_what_came_of_it() -> None:
    episode = Episode().begin("What?", {"system": "Be good."})
    seen = np.float32(0.5)
    info = {"tool_calls": [call("ok"), call("timeout", injected=True)], "seen": (seen, np.arange(2), math.nan)}
    episode.step("one", ("shown", 0.5, False, False, info))
    episode.step("two", ("", 1.0, False, False, {"tool_calls": [call("exception")]}))
    episode.step("three", ("bye", 0.25, True, False, {}))
    assert [turn.observation for turn in episode.steps] == ["What?", "shown", ""]
    assert episode.steps[1].observation is episode.messages[3].content, "the text is not copied"
    assert [turn.reward for turn in episode.steps] == [0.5, 1.0, 0.25]
    assert [turn.statuses for turn in episode.steps] == [[ToolStatus.OK], [ToolStatus.EXCEPTION], []]
    assert episode.steps[0].info["seen"] == [0.5, [0, 1], None]
    assert json.loads(json.dumps(episode.steps[0].info)) == episode.steps[0].info
    texts = json.dumps(episode.record()["steps"])
    assert "What?" not in texts
    assert "shown" not in texts, "a record holds an observation once, as the message"


def test_the_components_of_the_reward_add_up_over_the_turns() -> None:
    episode = Episode().begin("hi", {})
    episode.step("one", ("go on", 0.5, False, False, {"reward_components": {"task": 0.0, "tool_use": 0.5}}))
    episode.step("two", ("", 1.5, True, False, {"reward_components": {"task": 1.0, "tool_use": np.float32(0.5)}}))
    assert episode.rewards == {"task": 1.0, "tool_use": 1.0}


def test_the_task_is_what_reset_says_else_the_source_else_the_environment() -> None:
    assert Episode(task="rstar2/MathTool-v0").begin("hi", {"task": "algebra", "source": "mix"}).task == "algebra"
    assert Episode(task="rstar2/MathTool-v0").begin("hi", {"source": "mix"}).task == "mix"
    assert Episode(task="rstar2/MathTool-v0").begin("hi", {}).task == "rstar2/MathTool-v0"


def test_an_episode_that_does_not_count_has_earned_nothing_in_any_turn() -> None:
    episode = Episode().begin("hi", {})
    episode.step("one", ("go on", 0.5, False, False, {"reward_components": {"task": 0.5}}))
    episode.void("unavailable", "why")
    assert (episode.end, episode.reward, episode.error, episode.rewards) == ("unavailable", 0.0, "why", {})
    assert [turn.reward for turn in episode.steps] == [0.0]


TEXTS = st.text(st.characters())
STATUSES = st.lists(st.sampled_from(ToolStatus), max_size=3)
COUNTS = st.integers(0, 2**40)
EPISODES = st.builds(
    Episode,
    group=COUNTS,
    seed=st.none() | st.integers(0, 2**64),
    problem_id=TEXTS,
    messages=st.lists(st.builds(Message, TEXTS, TEXTS), max_size=3),
    prompt_ids=st.lists(COUNTS, max_size=3),
    completion_ids=st.lists(COUNTS, max_size=3),
    mask=st.lists(st.integers(0, 1), max_size=3),
    logprobs=st.lists(st.floats(-1, 0), max_size=3),
    reward=st.floats(allow_nan=False),
    end=TEXTS,
    turns=COUNTS,
    statuses=STATUSES,
    injected=STATUSES,
    answer=st.none() | TEXTS,
    correct=st.booleans(),
    answer_tags=COUNTS,
    policy_version=COUNTS,
    error=st.none() | TEXTS,
    steps=st.lists(
        st.builds(
            Turn,
            start=COUNTS,
            stop=COUNTS,
            observation=TEXTS,
            reward=st.floats(allow_nan=False),
            statuses=STATUSES,
            version=COUNTS,
            info=st.dictionaries(TEXTS, st.none() | COUNTS | TEXTS | st.lists(TEXTS, max_size=2), max_size=2),
        ),
        max_size=3,
    ),
    rewards=st.dictionaries(TEXTS, st.floats(allow_nan=False), max_size=2),
    task=TEXTS,
    source=st.sampled_from(["policy", "expert", "refined", "stale"]),
    parent=st.none() | st.tuples(COUNTS, COUNTS),
    usage=st.dictionaries(TEXTS, st.floats(allow_nan=False), max_size=2),
)


@given(EPISODES)
def test_a_record_gives_the_episode_back(episode: Episode) -> None:
    record = json.loads(json.dumps(episode.record()))
    again = Episode.from_record(record)
    assert again.record() == record
    fields = set(Episode.__dataclass_fields__) - {"prompt_ids", "shown_ids", "completion_ids", "mask", "logprobs"}
    for name in fields - {"recorded_tokens"}:
        assert getattr(again, name) == getattr(episode, name), name
    assert again.policy_tokens == episode.policy_tokens
    assert all(type(one) is ToolStatus for one in (*again.statuses, *again.injected))


LATER = ("steps", "rewards", "task", "source", "parent", "usage", "shown")


def test_a_record_of_before_there_were_turns_is_read_with_the_defaults() -> None:
    episode = Episode(seed=3).begin("hi", {"problem_id": "p"})
    episode.step("one", ("", 1.0, True, False, {"tool_calls": [call("ok")], "reward_components": {"task": 1.0}}))
    record = {name: value for name, value in episode.record().items() if name not in LATER}
    again = Episode.from_record(record)
    assert (again.statuses, again.reward, again.messages) == (episode.statuses, 1.0, episode.messages)
    assert (again.steps, again.rewards, again.task, again.source, again.parent) == ([], {}, "", "policy", None)


@pytest.mark.parametrize("name", [name for name in Episode().record() if name not in LATER])
def test_a_record_that_lacks_a_key_says_which(name: str) -> None:
    record = Episode().record()
    del record[name]
    with pytest.raises(RecordFormatError, match=f"key '{name}' is missing"):
        Episode.from_record(record)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("group", "1"),
        ("seed", 1.5),
        ("problem_id", None),
        ("messages", {"role": "user"}),
        ("messages", [{"role": "user"}]),
        ("messages", [{"role": "user", "content": None}]),
        ("reward", "much"),
        ("reward", True),
        ("turns", None),
        ("statuses", ["sulking"]),
        ("correct", 1),
        ("policy_tokens", [1, 0]),
        ("error", 7),
        ("steps", {}),
        ("steps", [{"start": 0}]),
        ("steps", [{**Turn().record(""), "statuses": ["sulking"]}]),
        ("steps", [{**Turn().record(""), "stop": None}]),
        ("steps", [{**Turn().record(""), "info": []}]),
        ("rewards", {"task": "much"}),
        ("task", None),
        ("source", "nowhere"),
        ("parent", [1]),
    ],
)
def test_a_value_of_another_form_is_named_with_its_key(name: str, value: Any) -> None:
    with pytest.raises(RecordFormatError, match=f"key '{name}' .*expected"):
        Episode.from_record({**Episode().record(), name: value})


def test_an_unknown_key_is_named_unless_the_file_has_it_beside() -> None:
    record = {**Episode().record(), "kept": True}
    with pytest.raises(RecordFormatError, match="unknown key 'kept'"):
        Episode.from_record(record)
    assert Episode.from_record(record, extra=("kept",)) == Episode()
    with pytest.raises(RecordFormatError, match="a mapping of keys to values"):
        Episode.from_record([])  # type: ignore[arg-type]  # what a caller may hand over
