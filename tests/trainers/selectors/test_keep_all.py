"""Keeping all episodes, equal rewards, and the names of selectors."""

from __future__ import annotations

import pytest
from roc_groups import choose, failure, lost, success

from rstar2_env.core.episode import Episode
from rstar2_env.trainers.selectors.base import SELECTORS, all_equal
from rstar2_env.trainers.selectors.keep_all import KeepAll
from rstar2_env.trainers.selectors.resample_on_correct import ResampleOnCorrect


def test_keep_all_keeps_the_first_that_are_available() -> None:
    group = [lost(), success(), failure(), lost(), success(), failure()]
    assert choose(KeepAll(), group, 3) == [1, 2, 4]
    assert choose(KeepAll(), group, 9) == [1, 2, 4, 5]


def test_keep_all_rejects_an_all_equal_group_only_on_request() -> None:
    group = [success(), success(errors=3)]
    assert choose(KeepAll(), group, 2) == [0, 1]
    assert choose(KeepAll(reject_equal=True), group, 2) == []
    assert choose(KeepAll(reject_equal=True), [*group, failure()], 3) == [0, 1, 2]


def test_all_equal_is_about_rewards() -> None:
    assert all_equal([])
    assert all_equal([success(), success(errors=4)])
    assert not all_equal([success(), failure()])


def test_selectors_are_found_by_name() -> None:
    assert {"all", "roc"} <= set(SELECTORS.names())
    assert SELECTORS.get("roc") is ResampleOnCorrect
    assert SELECTORS.get("all") is KeepAll


@pytest.mark.parametrize("sign", [1, -1])
def test_rewards_a_billionth_apart_are_equal(sign: int) -> None:
    """The largest is 1e9, so that a range of 1 is the bound."""
    for apart, equal in ((1, True), (2, False)):
        group = [Episode(reward=sign * 1e9), Episode(reward=sign * (1e9 - apart))]
        assert all_equal(group) == equal
    assert all_equal([Episode(reward=0.0)] * 2)
    assert not all_equal([Episode(reward=-1e-12), Episode(reward=1e-12)])
