"""Claims about how many planted defects an audit finds, and how many sound graders it accuses."""

from __future__ import annotations

import secrets

import pytest
from graders.measured import SOUND, graders, measure
from graders.planted import FAMILIES

FAMILY_COUNT = 20
SAMPLE = ("contained", "tolerant", "reward file", "fragile")


def test_there_are_twenty_families_and_each_draws_different_graders():
    assert len(FAMILIES) >= FAMILY_COUNT
    for name in FAMILIES:
        sources = [source for _, source in graders(0, 10, 0, (name,))]
        assert len(set(sources)) >= 5


def test_a_sample_of_planted_defects_is_found_and_sound_graders_are_not_accused(record_property):
    seed = secrets.randbelow(2**31)
    record_property("seed", seed)
    total = measure(graders(seed, 1, 3, SAMPLE))
    assert total.accused == [], f"seed {seed}"
    assert total.missed == [], f"seed {seed}"
    assert total.tried == dict.fromkeys(SAMPLE, 1) | {SOUND: 3}


def recorded(total, seed, record_property):
    record_property("seed", seed)
    record_property("unconfirmed suspicions", total.unconfirmed)


@pytest.mark.proof
def test_planted_defects_are_found(record_property):
    seed = secrets.randbelow(2**31)
    total = measure(graders(seed, 10, 0), show=True)
    recorded(total, seed, record_property)
    record_property("found", f"{sum(total.found.values())} of {sum(total.tried.values())}")
    record_property("missed", ", ".join(sorted(text.splitlines()[0][2:] for text in total.missed)) or "none")
    assert total.found_share >= 0.95, "\n".join(total.missed)


@pytest.mark.proof
def test_sound_graders_are_not_accused(record_property):
    seed = secrets.randbelow(2**31)
    total = measure(graders(seed, 0, 100), show=True)
    recorded(total, seed, record_property)
    record_property("accused", f"{len(total.accused)} of {total.tried[SOUND]}")
    assert total.accused_share <= 0.01, "\n".join(total.accused)
