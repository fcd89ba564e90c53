"""Faults planted in recorded folders: each is named in time, and the file of the measurement is about these faults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from detector import (
    CLEAN,
    FILE,
    OWN,
    PLANTED,
    RECORDED,
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
from opened_folders import OPENED_FOLDERS
from planted_folders import FOLDERS, write_folder
from planted_runs import LATER, RUNS

from rstar2_env.core.run_folder import RunWriter, read_run
from rstar2_env.diagnosis.examination import every_check, examine
from rstar2_env.diagnosis.folder import read_folder
from rstar2_env.diagnosis.live import Change, LiveDiagnosis

pytestmark = pytest.mark.train


@pytest.mark.parametrize("name", FOLDERS)
def test_a_planted_fault_is_named_in_time(name: str) -> None:
    every_check()
    weakest = Variant("tried", 0, "grpo_roc", FOLDERS[name].strengths[0])
    found = outcome(name, FOLDERS[name], weakest, Path("unused"))
    assert found.in_time, found


@pytest.mark.parametrize(
    "name",
    [
        "an exploit is paid",
        "weights never arrive",
        "held-out problems are trained on",
        "the judge is constant",
        "the sampler is stuck",
        "the sandbox is unavailable",
    ],
)
def test_a_finding_of_a_run_in_progress_has_the_evidence_of_its_folder(tmp_path: Path, name: str) -> None:
    plant = FOLDERS[name]
    write_folder(tmp_path / "run", plant, strength=plant.strengths[1])
    whole, said = read_folder(tmp_path / "run"), list(in_progress(tmp_path / "run", tmp_path / "begun"))
    assert plant.check in [change.finding.check for _, change in said]
    for step, change in said:
        named = tuple(text.replace(str(tmp_path / "begun"), str(tmp_path / "run")) for text in change.finding.change)
        assert replace(change.finding, change=named) in examine(whole, step=step).findings


def in_progress(folder: Path, begun: Path) -> Iterator[tuple[int, Change]]:
    """Yield each change that is reported while a recorded run is written step by step, with its step."""
    run = read_run(folder)
    figures = {int(line["step"]): line for line in run.metrics()}
    evaluated = {one.step: {f"eval/{name}": value for name, value in one.figures.items()} for one in run.evaluations}
    RunWriter(begun).begin(run.config, processes=1)
    live = LiveDiagnosis(begun)
    for step in sorted({0, *run.steps}):
        live.wrote("train", step, 0, [entry for _, _, entry in run.placed(step)])
        changes: list[Change] = []
        if step in evaluated:
            live.wrote("eval", step, 0, [entry for _, _, entry in run.placed(step, "eval")])
            changes += live.evaluated(step, evaluated[step])
        if step:
            changes += live.add(step, figures[step])
        yield from ((step, change) for change in changes)


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
    planted = {plant.check for plant in (*RUNS.values(), *LATER.values(), *FOLDERS.values())}
    assert set(every_names()) - planted == {"few_signals"}, "a share of 20 % of groups with a signal counts as clean"


def every_names() -> list[str]:
    return [check.name for check in every_check()]


def test_the_variants_of_a_half_are_the_same_in_each_measurement_and_have_other_seeds_and_strengths() -> None:
    once, again = (list(variants((0.1, 1.0), ("a", "b", "c"), "fault")) for _ in range(2))
    assert once == again
    own = {half: [one for one in once if one.half == half] for half in ("tried", "aside")}
    assert [len(of_half) for of_half in own.values()] == [VARIANTS, VARIANTS]
    assert len(once) == 2 * VARIANTS
    assert not {one.seed for one in own["tried"]} & {one.seed for one in own["aside"]}
    assert all(0.1 <= one.strength <= 1.0 for one in once)


@pytest.mark.parametrize("half", OWN)
@pytest.mark.parametrize("planted", PLANTED)
def test_a_half_with_runs_of_its_own_has_three_of_each_fault_and_as_many_clean_ones_as_the_others(
    half, planted
) -> None:
    faults, clean_ones = OWN[half][planted]
    plants, _ = PLANTED[planted] if faults else ({}, ())
    assert [name for name in plants if len(faults[name]) == VARIANTS] == list(faults) == list(plants)
    assert {name: {one.plant.check for one in own} for name, own in faults.items()} == {
        name: {plant.check} for name, plant in plants.items()
    }
    assert len(clean_ones) == CLEAN


@pytest.mark.parametrize("planted", PLANTED)
def test_no_two_runs_of_the_halves_with_runs_of_their_own_have_the_same_seed(planted) -> None:
    halves = [OWN[half][planted] for half in OWN]
    seeds = [one.seed for faults, clean_ones in halves for own in (*faults.values(), clean_ones) for one in own]
    assert len(seeds) == len(set(seeds))


def test_an_own_rule_decides_when_a_fault_can_be_seen(tmp_path) -> None:
    (first, *_) = OPENED_FOLDERS["KL runs away"]
    write_folder(tmp_path, first.plant, strength=first.strength, seed=first.seed, recipe=first.recipe)
    run = read_folder(tmp_path)
    kl = dict(run.series("kl"))
    seen = first.seen(run)
    assert seen > first.plant.since + 2
    before = [kl[first.plant.since - back] for back in (1, 2, 3)]
    in_row = [kl[seen - back] >= 10 * sum(before) / 3 for back in range(4)]
    assert in_row == [True, True, True, False]


@pytest.mark.parametrize(("named", "in_time"), [(0, False), (8, True), (9, False)])
def test_a_fault_counts_if_it_is_named_within_three_steps_of_the_step_at_which_it_can_be_seen(named, in_time) -> None:
    one = Outcome("fault", "check", "run", Variant("tried", 0, "grpo"), 5, named, ())
    found = counted([one])
    assert (one.in_time, found["in_time"], len(found["missed"])) == (in_time, int(in_time), int(not in_time))


def test_the_file_of_the_measurement_is_about_these_faults() -> None:
    found = json.loads(FILE.read_text("utf-8"))["measured"]
    assert set(found) <= {f"{half} {planted}" for half in RECORDED for planted in PLANTED}
    for place, measured in found.items():
        plants = {**PLANTED[place.split()[1]][0], **LATER}
        for name, own in measured["results"].items():
            if name != "clean":
                assert (own["check"], own["runs"]) == (plants[name].check, VARIANTS)
