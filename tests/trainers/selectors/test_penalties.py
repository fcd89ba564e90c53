"""Penalties of Resample-on-Correct, and the reward that is made of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from roc_groups import BAD, OK, OURS, failure, success

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.status import ToolStatus
from rstar2_env.rewards.clean_success import CleanSuccess
from rstar2_env.rewards.roc_penalty import format_penalty, penalty, tool_error_penalty


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([], 0.5),
        ([OURS], 0.5),
        ([OK], 0.0),
        ([ToolStatus.EMPTY], 0.0),
        ([BAD], 1.0),
        ([OK, OK, OK, BAD], 0.25),
        ([OURS, BAD, OK], 0.5),
        ([ToolStatus.MALFORMED, ToolStatus.UNKNOWN_TOOL, ToolStatus.INVALID_ARGUMENTS, OK], 0.75),
        ([ToolStatus.TIMEOUT, ToolStatus.SYNTAX_ERROR, ToolStatus.MEMORY, ToolStatus.BLOCKED], 1.0),
    ],
)
def test_p_err_is_the_share_of_failed_calls_and_a_half_without_any(statuses: list[ToolStatus], expected: float) -> None:
    assert tool_error_penalty(Episode(statuses=statuses)) == expected


def test_p_err_counts_no_injected_fault() -> None:
    assert tool_error_penalty(Episode(statuses=[OK], injected=[BAD, BAD])) == 0.0
    assert tool_error_penalty(Episode(injected=[BAD])) == 0.5


def test_p_err_comes_from_statuses_and_never_from_text() -> None:
    shown = Message("user", "<tool_response>\nValueError: error\n</tool_response>")
    episode = Episode(messages=[shown])
    episode.observe(0.0, False, False, {"tool_calls": [{"name": "python", "status": "ok", "injected": False}]})
    assert tool_error_penalty(episode) == 0.0


@pytest.mark.parametrize(
    ("tags", "turns", "expected"),
    [(0, 1, 1.0), (0, 7, 1.0), (1, 1, 0.0), (1, 5, 0.0), (2, 5, 0.2), (3, 2, 1.0), (9, 4, 1.0), (2, 0, 1.0)],
)
def test_p_format_is_the_share_of_turns_with_an_answer_too_many(tags: int, turns: int, expected: float) -> None:
    assert format_penalty(Episode(answer_tags=tags, turns=turns)) == pytest.approx(expected)


def test_a_solution_in_one_turn_has_no_format_penalty() -> None:
    """The released code gives it 1, since it counts turns in a text that lacks the first one's header."""
    assert format_penalty(Episode(answer_tags=1, turns=1)) == 0.0
    assert penalty(Episode(answer_tags=1, turns=1)) == 0.5


@given(
    statuses=st.lists(st.sampled_from(list(ToolStatus)), max_size=8), tags=st.integers(0, 9), turns=st.integers(1, 9)
)
def test_the_penalty_is_the_sum_and_lies_between_zero_and_two(
    statuses: list[ToolStatus], tags: int, turns: int
) -> None:
    episode = Episode(statuses=statuses, answer_tags=tags, turns=turns)
    assert penalty(episode) == tool_error_penalty(episode) + format_penalty(episode)
    assert 0.0 <= penalty(episode) <= 2.0


def test_the_format_penalty_of_an_episode_without_turns_is_that_of_one() -> None:
    assert format_penalty(Episode(answer_tags=2, turns=0)) == format_penalty(Episode(answer_tags=2, turns=1)) == 1
    assert format_penalty(Episode(answer_tags=2, turns=2)) == 0.5
    assert format_penalty(Episode(answer_tags=9, turns=2)) == format_penalty(Episode(answer_tags=0, turns=2)) == 1


@pytest.mark.parametrize(("errors", "calls", "tags", "score"), [(0, 4, 1, 1.0), (1, 4, 1, 0.875), (0, 0, 0, 0.25)])
def test_clean_success_takes_half_of_the_penalty_off_a_success(errors, calls, tags, score):
    assert CleanSuccess(no_call=0.5)(success(errors, calls, tags), None) == pytest.approx(score)
    assert CleanSuccess()(success(0, 0), None) == 1, "an episode without a call loses nothing by default"
    assert CleanSuccess(cost=0)(success(errors, calls, tags), None) == 1
    assert CleanSuccess()(failure(errors, 4), None) == 0
