"""Why an episode was left out, as each selector tells it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.core.episode import Episode
from rstar2_env.core.status import ToolStatus
from rstar2_env.trainers.selectors.base import Reasons, all_equal, plain_reasons
from rstar2_env.trainers.selectors.keep_all import KeepAll
from rstar2_env.trainers.selectors.resample_on_correct import ResampleOnCorrect


def episode(reward, end="answered", errors=0):
    statuses = [ToolStatus.EXCEPTION] * errors + [ToolStatus.OK]
    return Episode(reward=reward, end=end, correct=reward > 0, answer_tags=1, turns=2, statuses=statuses)


def told(selector, group, keep):
    chosen = selector(group, keep, np.random.default_rng(0))
    return chosen, selector.reasons(group, keep, chosen)


def test_all_has_no_room_for_more_than_it_keeps():
    group = [episode(1.0), episode(0.0, "unavailable"), episode(0.0), episode(1.0), episode(0.0, "cancelled")]
    assert told(KeepAll(), group, 2) == ([0, 2], {1: "unavailable", 3: "quota", 4: "cancelled"})


@pytest.mark.parametrize("selector", [KeepAll(reject_equal=True), ResampleOnCorrect()])
def test_a_group_without_a_difference_is_equal(selector):
    group = [episode(1.0), episode(1.0), episode(0.0, "unavailable")]
    assert told(selector, group, 2) == ([], {0: "equal", 1: "equal", 2: "unavailable"})


def test_right_answers_that_earn_differently_are_equal_where_being_right_counts():
    group = [episode(1.0), episode(0.5), episode(0.75)]
    assert told(KeepAll(reject_equal=True), group, 3)[0] == [0, 1, 2]
    assert told(KeepAll(reject_equal=True, equal="correct"), group, 3) == ([], dict.fromkeys(range(3), "equal"))
    mixed = [*group, episode(0.0)]
    assert told(KeepAll(reject_equal=True, equal="correct"), mixed, 4)[0] == [0, 1, 2, 3]


def test_rewards_that_differ_by_rounding_alone_are_equal():
    assert all_equal([episode(0.1 + 0.2), episode(0.3)])
    assert not all_equal([episode(0.3), episode(0.3 + 1e-6)])
    assert not all_equal([episode(0.0), episode(1e-300)])


def test_roc_tells_penalties_from_draws_and_quotas():
    group = [*(episode(1.0, errors=errors) for errors in range(4)), *(episode(0.0) for _ in range(4))]
    chosen, reasons = told(ResampleOnCorrect(mode="rank"), group, 4)
    assert chosen[:2] == [0, 1]
    assert {at: why for at, why in reasons.items() if at < 4} == {2: "penalty", 3: "penalty"}
    assert sorted(why for at, why in reasons.items() if at >= 4) == ["draw", "draw"]
    chosen, reasons = told(ResampleOnCorrect(minimum=0), [*[episode(1.0)], *[episode(0.0)] * 9], 2)
    assert (0 in chosen, reasons.get(0)) == (False, "quota")


@given(
    rewards=st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=12),
    lost=st.sets(st.integers(0, 11)),
    keep=st.integers(1, 8),
)
@pytest.mark.parametrize("selector", [KeepAll(), KeepAll(reject_equal=True), ResampleOnCorrect()])
def test_everything_left_out_has_a_reason_and_nothing_else(selector, rewards, lost, keep):
    group = [episode(reward, "unavailable" if at in lost else "answered") for at, reward in enumerate(rewards)]
    chosen, reasons = told(selector, group, keep)
    assert isinstance(selector, Reasons)
    assert sorted([*chosen, *reasons]) == list(range(len(group)))
    assert all(reasons.values())
    assert {at for at, why in reasons.items() if why == "unavailable"} == {at for at in lost if at < len(group)}


def test_a_group_that_was_rejected_though_its_rewards_differ_is_rejected_or_equally_right():
    group = [episode(1.0), episode(0.5)]
    assert plain_reasons(group, [], "draw") == {0: "rejected", 1: "rejected"}
    assert KeepAll().reasons(group, 2, []) == {0: "rejected", 1: "rejected"}
    assert KeepAll(equal="correct").reasons(group, 2, []) == {0: "equal", 1: "equal"}
    assert KeepAll(equal="correct").reasons(group, 1, [0]) == {1: "quota"}


def test_a_success_that_only_chance_left_out_is_not_blamed_for_its_penalty():
    clean = [*(episode(1.0) for _ in range(6)), *(episode(0.0) for _ in range(2))]
    _, reasons = told(ResampleOnCorrect(), clean, 4)
    assert set(reasons.values()) == {"draw"}
    errors = [0, 0, 0, 3, 3, 3]
    mixed = [*(episode(1.0, errors=count) for count in errors), *(episode(0.0) for _ in range(2))]
    _, reasons = told(ResampleOnCorrect(), mixed, 4)
    successes = {at: why for at, why in reasons.items() if at < 6}
    assert successes
    assert all(why == ("penalty" if errors[at] else "draw") for at, why in successes.items())


def test_by_rank_an_earlier_episode_with_the_same_penalty_goes_first():
    group = [*(episode(1.0) for _ in range(3)), *(episode(1.0, errors=3) for _ in range(3)), episode(0.0), episode(0.0)]
    chosen, reasons = told(ResampleOnCorrect(mode="rank"), group, 4)
    assert [at for at in chosen if at < 6] == [0, 1]
    assert {at: why for at, why in reasons.items() if at < 6} == {2: "order", 3: "penalty", 4: "penalty", 5: "penalty"}


def test_a_penalty_is_the_reason_only_if_it_made_a_success_less_likely_than_in_a_uniform_draw():
    selector = ResampleOnCorrect(delta=1.0)
    group = [*(episode(1.0, errors=errors) for errors in (0, 1, 3, 3, 3, 3)), *[episode(0.0)] * 6]
    told = selector.weighed(group, 4)
    assert told[0]["chance"] > told[1]["chance"] > 1 / 6 > told[2]["chance"]
    reasons = selector.reasons(group, 4, [0, 2, 6, 7])
    assert {at: reasons[at] for at in (1, 3, 4, 5)} == {1: "draw", 3: "penalty", 4: "penalty", 5: "penalty"}
