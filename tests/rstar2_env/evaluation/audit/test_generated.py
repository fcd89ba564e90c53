"""Claims about how many planted defects an audit finds, and how many sound graders it accuses."""

from __future__ import annotations

import secrets

import pytest
from graders import measured
from graders.measured import SOUND, Record, graders, measure
from graders.planted import FAMILIES, REPORTED

FAMILY_COUNT = 20
SAMPLE = ("contained", "reward file", "fragile", "whole text")
"""Families of a sample; the last one was reported in public, and its author did not read the audit."""


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


def test_a_stopped_measurement_continues_with_its_seed_and_a_whole_one_begins_again(tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "RECORDS", tmp_path)
    first = Record("some")
    first.add({"findings": [["paid", "cut", "said"]]})
    again = Record("some")
    assert (again.seed, again.known(0), again.known(1)) == (first.seed, {"findings": [["paid", "cut", "said"]]}, None)
    again.close()
    assert Record("some").known(0) is None


def test_the_families_after_reports_draw_graders_that_compile():
    assert len(REPORTED) == 8
    assert SAMPLE[-1] in REPORTED
    assert not REPORTED.keys() & FAMILIES.keys()
    for _, source in graders(1, 5, 0, tuple(REPORTED)):
        compile(source, "grader.py", "exec")


def recorded(name, planted, sounds, record_property):
    """Measure with a record, so that a proof that was stopped continues, and give the report its figures."""
    record = Record(name)
    total = measure(graders(record.seed, planted, sounds), show=True, record=record)
    record_property("seed", record.seed)
    record_property("unconfirmed suspicions", total.unconfirmed)
    record_property("seconds of the audits", round(total.seconds))
    record.close()
    return total


@pytest.mark.proof
def test_planted_defects_are_found(record_property):
    total = recorded("planted", 10, 0, record_property)
    record_property("found", f"{sum(total.found.values())} of {sum(total.tried.values())}")
    record_property("missed", ", ".join(sorted(text.splitlines()[0][2:] for text in total.missed)) or "none")
    assert total.found_share >= 0.95, "\n".join(total.missed)


@pytest.mark.proof
def test_sound_graders_are_not_accused(record_property):
    total = recorded("sound", 0, 100, record_property)
    record_property("accused", f"{len(total.accused)} of {total.tried[SOUND]}")
    assert total.accused_share <= 0.01, "\n".join(total.accused)
