"""Faults planted in recorded folders: each is named in time, and the file of the measurement is about these faults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from detector import (
    FILE,
    HALVES,
    PLANTED,
    VARIANTS,
    Outcome,
    Variant,
    clean_run,
    counted,
    false_alarms,
    is_clean,
    outcome,
    variants,
)
from diagnosed import clean
from planted_folders import FOLDERS
from planted_runs import RUNS

from rstar2_env.diagnosis.examination import every_check

pytestmark = pytest.mark.train


@pytest.mark.parametrize("name", FOLDERS)
def test_a_planted_fault_is_named_in_time(name: str) -> None:
    every_check()
    weakest = Variant("tried", 0, "grpo_roc", FOLDERS[name].strengths[0])
    found = outcome(name, FOLDERS[name], weakest, Path("unused"))
    assert found.in_time, found


@pytest.mark.parametrize("recipe", ["grpo_roc", "dapo"])
def test_a_clean_folder_has_no_finding_at_any_step(recipe: str) -> None:
    run = clean_run(Variant("tried", 7, recipe), Path("unused"), real=False)
    assert is_clean(run)
    assert false_alarms(run) == []


@pytest.mark.parametrize(
    ("change", "is_so"),
    [
        ({}, True),
        ({"groups__signal": 1, "groups__none_correct": 7, "groups__all_correct": 0}, False),
        ({"policy__entropy": 0.04}, False),
    ],
)
def test_a_run_with_few_signals_or_a_low_entropy_does_not_count_as_clean(change, is_so) -> None:
    assert is_clean(clean(since=1, **change)) is is_so


def test_a_run_whose_held_out_pass_rate_falls_does_not_count_as_clean() -> None:
    run = clean()
    run.evaluations[-1].figures["pass_rate"] = 0.4
    assert not is_clean(run)


def test_every_fault_is_planted_for_a_check_of_its_own_or_one_of_several_causes() -> None:
    planted = {plant.check for plant in (*RUNS.values(), *FOLDERS.values())}
    assert set(every_names()) - planted == {"few_signals"}, "a share of 20 % of groups with a signal counts as clean"


def every_names() -> list[str]:
    return [check.name for check in every_check()]


def test_the_variants_of_a_half_are_the_same_in_each_measurement_and_have_other_seeds_and_strengths() -> None:
    once, again = (list(variants((0.1, 1.0), ("a", "b", "c"), "fault")) for _ in range(2))
    assert once == again
    own = {half: [one for one in once if one.half == half] for half in HALVES}
    assert [len(of_half) for of_half in own.values()] == [VARIANTS, VARIANTS]
    assert not {one.seed for one in own["tried"]} & {one.seed for one in own["aside"]}
    assert all(0.1 <= one.strength <= 1.0 for one in once)


@pytest.mark.parametrize(("named", "in_time"), [(0, False), (8, True), (9, False)])
def test_a_fault_counts_if_it_is_named_within_three_steps_of_the_step_at_which_it_can_be_seen(named, in_time) -> None:
    one = Outcome("fault", "check", "run", Variant("tried", 0, "grpo"), 5, named, ())
    found = counted([one])
    assert (one.in_time, found["in_time"], len(found["missed"])) == (in_time, int(in_time), int(not in_time))


def test_the_file_of_the_measurement_is_about_these_faults() -> None:
    found = json.loads(FILE.read_text("utf-8"))["measured"]
    assert set(found) <= {f"{half} {planted}" for half in HALVES for planted in PLANTED}
    for place, measured in found.items():
        plants, _ = PLANTED[place.split()[1]]
        for name, own in measured["results"].items():
            if name != "clean":
                assert (own["check"], own["runs"]) == (plants[name].check, VARIANTS)
