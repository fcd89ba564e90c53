"""When enough episodes of a group have ended for a selector to choose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from roc_groups import choose, counts, failure, lost, success

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.selectors.keep_all import KeepAll
from rstar2_env.trainers.selectors.resample_on_correct import ResampleOnCorrect


def test_keep_all_is_settled_by_its_first_ones_and_nothing_later_changes_what_it_keeps() -> None:
    selector = KeepAll()
    group = [success(), lost(), failure(), success(), failure()]
    assert not selector.settled([group[0], None, group[2], group[3], group[4]], 2), "the second may yet count"
    assert not selector.settled([group[0], lost(), None, group[3], None], 2)
    assert selector.settled([group[0], group[1], group[2], None, None], 2)
    assert choose(selector, group, 2) == choose(selector, [*group[:3], failure(), failure()], 2) == [0, 2]


@given(st.lists(st.sampled_from(["success", "failure", "lost", "plays"]), max_size=40), st.integers(1, 16))
def test_keep_all_keeps_the_same_whatever_becomes_of_those_that_still_play(kinds: list[str], keep: int) -> None:
    make = {"success": success, "failure": failure, "lost": lost}
    now = [make[kind]() if kind != "plays" else None for kind in kinds]
    if KeepAll().settled(now, keep):
        best = [episode or success() for episode in now]
        worst = [episode or lost() for episode in now]
        assert choose(KeepAll(), best, keep) == choose(KeepAll(), worst, keep)


def test_roc_is_settled_when_enough_of_both_kinds_have_ended() -> None:
    selector = ResampleOnCorrect(spare=1.5)
    ended = [success()] * 6 + [failure()] * 4
    assert selector.settled([*ended, *[None] * 6], 8)
    assert not selector.settled([*ended[1:], *[None] * 7], 8), "a success too few to choose from"
    assert not selector.settled([*ended[:-1], lost(), *[None] * 6], 8), "what was lost is none"
    assert not selector.settled([success()] * 15 + [None], 8), "it may yet be all equal"
    kept = choose(selector, ended, 8)
    assert len(kept) == 8
    assert counts(ended, kept)[1] >= 3


def test_a_spare_below_one_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="spare"):
        ResampleOnCorrect(spare=0.5)


@pytest.mark.parametrize(
    ("keep", "spare", "successes", "failures"), [(4, 2.0, 4, 2), (3, 2.0, 3, 2), (3, 1.0, 2, 2), (1, 1.0, 1, 1)]
)
def test_roc_is_settled_by_exactly_so_many(keep: int, spare: float, successes: int, failures: int) -> None:
    """Half of what is kept are failures, and ``spare`` times as many successes; halves are rounded up."""
    selector = ResampleOnCorrect(spare=spare)
    assert selector.settled([*[success()] * successes, *[failure()] * failures, None], keep)
    assert not selector.settled([*[success()] * (successes - 1), *[failure()] * 9, None], keep)
    assert not selector.settled([*[success()] * 9, *[failure()] * (failures - 1), None], keep)
