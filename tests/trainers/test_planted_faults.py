"""Faults planted in real runs of the tiny model: the diagnosis names each in time, and none in a clean run.

``planted_runs`` says what is planted, and when each fault can be seen.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from detector import CLEAN, PLANTED, WITHIN, Variant, outcome, record
from planted_runs import EVERY, LOOK_ALIKES, RUNS, train, train_together

from rstar2_env.core.run_folder import read_run
from rstar2_env.diagnosis import diagnose
from rstar2_env.diagnosis.examination import examine
from rstar2_env.diagnosis.folder import read_folder
from rstar2_env.diagnosis.live import Change, LiveDiagnosis

pytestmark = pytest.mark.train

SHORT = {
    "the learning rate is too high": {
        *("kl_runs_away", "all_right", "all_wrong", "few_signals", "entropy_collapsed", "episodes_identical")
    },
    "the gradient is zero": {"learning_rate_low"},
    "the engine has another temperature": set(),
    "tokens of the environment train": {"engine_differs"},
    "every episode is wrong": set(),
    "the engine has another precision": set(),
    "new weights never reach the engine": set(),
    "new adapters never reach the engine": set(),
    "a resume loses the optimizer": set(),
    "sampling is greedy": {"all_wrong", "entropy_collapsed"},
}
"""Faults of which every change is tested, and what else they cause."""


def test_a_clean_run_is_looked_at_by_the_checks_of_planted_faults_and_has_none(tiny_model, tmp_path: Path) -> None:
    found = diagnose(train(tiny_model, tmp_path / "run", None))
    assert found.names == []
    looked = {plant.check for plant in RUNS.values() if plant.processes == 1} - {"clip_never", "optimizer_lost"}
    assert looked <= set(found.silent)


@pytest.mark.parametrize("name", SHORT)
def test_a_planted_fault_is_named_in_time_and_no_other_is(tiny_model, name: str) -> None:
    found = outcome(name, EVERY[name], Variant("tried", 0, "grpo", EVERY[name].strengths[1]), tiny_model)
    assert found.in_time, found
    assert set(found.also) <= SHORT[name]


@pytest.mark.parametrize("name", [name for name, one in LOOK_ALIKES.items() if one.processes == 1])
def test_the_nearest_look_alike_of_a_planted_fault_is_looked_at_and_not_named(tiny_model, tmp_path, name: str) -> None:
    alike = LOOK_ALIKES[name]
    found = diagnose(train(tiny_model, tmp_path / "run", alike, strength=alike.strengths[0]))
    assert alike.check in found.silent
    assert found.names == []


@pytest.mark.slow
def test_faults_of_two_processes_are_named_in_time_and_two_slow_processes_are_not(tiny_model, tmp_path) -> None:
    names = ("two processes have the same seeds", "one process is slow", "two processes are slow")
    more = {"seed": 0, "recipe": "grpo", "strength": 1.0}
    train_together(*((tiny_model, tmp_path / name, name, more) for name in names))
    for name in names:
        run, plant = read_folder(tmp_path / name), EVERY[name]
        assert {one.rank for step in run.steps for one in step.episodes} == {0, 1}
        assert examine(run, step=plant.visible + WITHIN).names == ([plant.check] if name in RUNS else [])
        assert plant.check not in examine(run).not_recorded


@pytest.mark.parametrize(
    "name", ["the learning rate is too high", "every episode is wrong", "a resume loses the optimizer"]
)
def test_a_finding_of_a_run_in_progress_has_the_evidence_of_its_folder(
    tiny_model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    said: list[tuple[int, Change]] = []

    class Kept(LiveDiagnosis):
        def _examined(self):
            changes = super()._examined()
            said.extend((self.record.last, change) for change in changes)
            return changes

    monkeypatch.setattr("rstar2_env.trainers.hooks.diagnosis.LiveDiagnosis", Kept)
    folder = train(tiny_model, tmp_path / "run", RUNS[name], strength=RUNS[name].strengths[1])
    assert RUNS[name].check in [change.finding.check for _, change in said]
    for step, change in said:
        assert change.finding in diagnose(folder, step=step).findings
    assert [note["text"] for note in read_run(folder).notes] == [change.line for _, change in said]


def test_a_finding_is_noted_during_the_run_without_an_option(tiny_model, tmp_path: Path) -> None:
    folder = train(tiny_model, tmp_path / "run", RUNS["the learning rate is too high"])
    notes = [(note["step"], note["text"]) for note in read_run(folder).notes]
    assert next(step for step, text in notes if "learning_rate_high" in text) == 1


@pytest.mark.proof
@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize(("half", "least"), [("tried", 0.95), ("aside", 0.95), ("blind", 0.8), ("later", 0)])
def test_planted_faults_are_named_and_clean_runs_are_clean(tiny_model, record_property, half, least, planted) -> None:
    found = record(tiny_model, half, planted)
    clean = found.pop("clean")
    alarms = clean["false_alarms"]
    in_time, runs = (sum(one[name] for one in found.values()) for name in ("in_time", "runs"))
    record_property("named in time", f"{in_time} of {runs}")
    record_property("false alarms", f"{len(alarms)} of {CLEAN} clean runs")
    assert in_time >= least * runs, {name: one["missed"] for name, one in found.items() if one["missed"]}
    assert clean["runs"] == CLEAN
    assert len(alarms) <= 1, alarms
