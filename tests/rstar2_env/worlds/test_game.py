"""Intermediate answers: how they are read, written and counted."""

import pytest

from rstar2_env.worlds.game import IntermediateCounts, read_intermediates, write_intermediate


def test_intermediates_are_read_leniently_and_the_last_one_counts():
    turn = "[Intermediate Thinking Results 1: 3]\n[Intermediate Thinking Results 1: 05, 7]"
    assert read_intermediates(turn + "[Intermediate Thinking Results 2: None]") == {1: {"5", "7"}, 2: set()}
    for items in (frozenset(), frozenset({"1", "9"})):
        assert read_intermediates(write_intermediate(4, items)) == {4: items}


def test_the_tally_counts_hits_misses_and_claims():
    tally = IntermediateCounts()
    tally.add({1: frozenset("12"), 2: frozenset()}, [frozenset("23"), frozenset(), frozenset("4")])
    assert tally.record() == {"tp": 1, "fp": 1, "fn": 2, "tn": 1, "missing": 1, "f1": pytest.approx(2 / 5)}
    assert IntermediateCounts().f1 == 0.0
    assert IntermediateCounts(tn=2).f1 == 1.0
