"""``guard`` and ``collapse``: when they act, what they do, and that a resumed run acts at the same step."""

from __future__ import annotations

import math

import pytest
from hook_events import HookEvents

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.hooks.collapse import Collapse
from rstar2_env.trainers.hooks.guard import Guard


def kl(*values, hook=None, **options):
    return HookEvents(hook or Guard(**{"high": 0.5, **options})).logs(*values, metric="kl")


def test_it_acts_after_as_many_logs_in_a_row_and_once_until_the_figure_was_within():
    assert kl(0.6, 0.6, 0.4, 0.6, 0.6, 0.6, 0.6, 0.6).noted() == [6]
    assert kl(0.6, 0.6, 0.6, 0.5, 0.6, 0.6, 0.6).noted() == [3, 7]
    assert kl(0.6, 0.6, patience=1).noted() == [1]


@pytest.mark.parametrize(
    ("bounds", "outside"),
    [({"high": 0.5}, [0.6]), ({"low": 0.2, "high": None}, [0.1]), ({"low": 0.2, "high": 0.5}, [0.1, 0.6])],
)
def test_each_bound_may_be_left_out_and_is_itself_within(bounds, outside):
    for value in (0.1, 0.2, 0.3, 0.5, 0.6):
        assert bool(kl(value, patience=1, **bounds).noted()) == (value in outside)


@pytest.mark.parametrize(
    ("action", "saved", "stopped", "words"),
    [("warn", [], None, "continues unchanged"), ("save", [2], None, "is written"), ("stop", [2], 2, "the run stops")],
)
def test_it_warns_saves_or_stops_and_says_why(action, saved, stopped, words):
    events = kl(0.6, 0.75, 0.4, patience=2, action=action)
    assert (events.saved, events.stopped) == (saved, stopped)
    ((_, text),) = events.done("note")
    assert text.startswith("kl was outside of the range -inf to 0.5 2 times in a row, most recently 0.75")
    assert words in text


def test_a_log_without_the_figure_says_nothing():
    assert kl(0.6, math.nan, 0.6, patience=2).noted() == [3]
    assert HookEvents(Guard(metric="policy/entropy", low=0.1)).logs(0.0, metric="kl").noted() == []


def test_bounds_that_nothing_is_between_are_refused():
    with pytest.raises(ConfigurationError, match="low=2 must not be greater than high=1"):
        Guard(low=2, high=1)


@pytest.mark.parametrize("stop", range(1, 6))
def test_a_resumed_guard_acts_at_the_same_step(stop):
    values = [0.4, 0.6, 0.6, 0.6, 0.6, 0.4]
    begun = kl(*values[:stop])
    later = begun.resumed(Guard(high=0.5)).logs(*values[stop:], metric="kl")
    assert begun.noted() + later.noted() == kl(*values).noted() == [4]


GOOD, FALLEN = [0.5, 0.6, 0.7, 0.8, 0.8, 0.8], [0.4, 0.3, 0.3, 0.3, 0.3, 0.3]


def reward(*values, hook=None, **options):
    options = {"window": 2, "patience": 3, "share": 0.3, **options}
    return HookEvents(hook or Collapse(**options)).logs(*values, metric="rollout/reward")


def test_a_fall_by_the_share_below_the_best_for_long_enough_stops_the_run_with_the_reason():
    events = reward(*GOOD, *FALLEN)
    # Means of two: .8 is the best, .56 the line, and .35 at step 8 the first below it but .6 at step 7.
    assert events.stopped == 10
    assert events.saved == [10]
    ((_, text),) = events.done("note")
    assert "has collapsed" in text
    assert "below 0.56 3 times in a row, most recently 0.3; its best mean was 0.8 at step 5" in text


def test_noise_a_short_fall_and_a_smaller_one_are_no_collapse():
    assert reward(*GOOD, 0.1, 0.8, 0.1, 0.8, 0.8, share=0.5).noted() == []
    assert reward(*GOOD, 0.4, 0.3, 0.8, 0.8, 0.8).noted() == []
    assert reward(*GOOD, *FALLEN, share=0.7).noted() == []


def test_what_never_rose_cannot_fall_and_a_reward_below_nought_falls_too():
    assert reward(*[0.0] * 20).noted() == []
    assert reward(*[-0.5] * 6, *[-0.9] * 6).stopped == 9
    assert reward(*[-0.5] * 6, *[-0.6] * 6).stopped is None


@pytest.mark.parametrize("stop", range(1, 12))
def test_a_resumed_run_collapses_at_the_same_step(stop):
    values = [*GOOD, *FALLEN]
    begun = reward(*values[:stop])
    later = begun.resumed(Collapse(window=2, patience=3)).logs(*values[stop:], metric="rollout/reward")
    assert (begun.done("note") + later.done("note")) == reward(*values).done("note")


def test_it_may_only_warn_and_looks_again_after_the_reward_was_back():
    events = reward(*GOOD, *FALLEN, *GOOD, *FALLEN, action="warn")
    assert events.stopped is None
    assert len(events.noted()) == 2
