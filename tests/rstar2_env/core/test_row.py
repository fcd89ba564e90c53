"""A row: its sizes, whether it trains, and to which turn and depth of calls a token belongs."""

from __future__ import annotations

import numpy as np
import pytest

from rstar2_env.core.episode import Episode
from rstar2_env.core.row import Row
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn

OK, BAD = ToolStatus.OK, ToolStatus.EXCEPTION


@pytest.fixture
def episode() -> Episode:
    """Three turns of 2, 1 and 2 tokens, with two calls, none and one."""
    return Episode(
        prompt_ids=[1, 2, 3],
        completion_ids=[10, 11, 20, 12, 21, 22, 13, 14],
        mask=[1, 1, 0, 1, 0, 0, 1, 1],
        logprobs=[-1.0] * 8,
        steps=[Turn(0, 2, statuses=[OK, BAD]), Turn(3, 4), Turn(6, 8, statuses=[OK])],
    )


def test_each_token_of_the_policy_knows_its_turn_and_the_calls_before_it(episode: Episode) -> None:
    row = Row.of(episode, 1.0)
    assert row.turn_of().tolist() == [0, 0, -1, 1, -1, -1, 2, 2]
    assert row.depth_of().tolist() == [0, 0, -1, 2, -1, -1, 2, 2]
    assert (row.policy_tokens, row.tokens) == (5, 11)


def test_a_row_of_the_later_turns_counts_them_as_the_episode_does(episode: Episode) -> None:
    row = Row(episode, [9], episode.completion_ids[3:], episode.mask[3:], episode.logprobs[3:], start=3)
    assert row.turn_of().tolist() == [1, -1, -1, 2, 2]
    assert row.depth_of().tolist() == [2, -1, -1, 2, 2]
    only = Row(episode, [9], [10], [1], [-1.0])
    assert only.turn_of().tolist() == [0]


def test_a_token_that_a_row_masks_belongs_to_no_turn(episode: Episode) -> None:
    row = Row(episode, [1], episode.completion_ids, [0, 1, 0, 0, 0, 0, 1, 0], episode.logprobs)
    assert row.turn_of().tolist() == [-1, 0, -1, -1, -1, -1, 2, -1]


def test_each_token_of_the_environment_knows_how_many_calls_it_answers(episode: Episode) -> None:
    row = Row.of(episode, 1.0)
    assert row.answered_of().tolist() == [-1, -1, 2, -1, 0, 0, -1, -1]
    assert row.environment_tokens == 3
    later = Row(episode, [9], episode.completion_ids[2:], episode.mask[2:], episode.logprobs[2:], start=2)
    assert later.answered_of().tolist() == [2, -1, 0, 0, -1, -1]


def test_a_token_of_the_policy_that_a_row_masks_is_not_the_environments(episode: Episode) -> None:
    row = Row(episode, [1], episode.completion_ids, [0, 0, 0, 1, 0, 0, 1, 1], episode.logprobs)
    assert row.answered_of().tolist() == [-1, -1, 2, -1, 0, 0, -1, -1]


def test_a_row_trains_where_a_token_of_the_policy_has_an_advantage(episode: Episode) -> None:
    assert Row.of(episode, -0.5).trains
    assert not Row.of(episode, 0.0).trains
    assert not Row(episode, [1], [2, 3], [0, 0], [0.0, 0.0], advantage=1.0).trains
    on_the_tools = np.array([0, 0, 3.0, 0, 1.0, 1.0, 0, 0])
    assert not Row.of(episode, on_the_tools).trains
    assert Row.of(episode, on_the_tools + np.eye(8)[7]).trains


def test_a_row_of_a_whole_episode_copies_nothing(episode: Episode) -> None:
    row = Row.of(episode, 1.0)
    assert row.completion_ids is episode.completion_ids
    assert row.mask is episode.mask
