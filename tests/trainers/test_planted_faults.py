"""Faults planted in real runs of the tiny model: the diagnosis names each in time, and none in a clean run.

``planted_runs`` says what is planted, and when each fault can be seen.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from detector import CLEAN, HALVES, PLANTED, Variant, measure, outcome
from planted_runs import RUNS, train

from rstar2_env.core.run_folder import read_run
from rstar2_env.diagnosis import diagnose

pytestmark = pytest.mark.train

SHORT = {
    "the learning rate is too high": {"kl_runs_away", "all_right", "all_wrong", "few_signals", "entropy_collapsed"},
    "the gradient is zero": {"learning_rate_low"},
    "the engine has another temperature": set(),
    "tokens of the environment train": {"engine_differs"},
    "every episode is wrong": set(),
}
"""Faults of which every change is tested, and what else they cause."""


def test_a_clean_run_is_looked_at_by_the_checks_of_planted_faults_and_has_none(tiny_model, tmp_path: Path) -> None:
    found = diagnose(train(tiny_model, tmp_path / "run", None))
    assert found.names == []
    looked = {plant.check for plant in RUNS.values()} - {"clip_never"}
    assert looked <= set(found.silent)


@pytest.mark.parametrize("name", SHORT)
def test_a_planted_fault_is_named_in_time_and_no_other_is(tiny_model, name: str) -> None:
    found = outcome(name, RUNS[name], Variant("tried", 0, "grpo", RUNS[name].strengths[1]), tiny_model)
    assert found.in_time, found
    assert set(found.also) <= SHORT[name]


def test_a_finding_is_noted_during_the_run_without_an_option(tiny_model, tmp_path: Path) -> None:
    folder = train(tiny_model, tmp_path / "run", RUNS["the learning rate is too high"])
    notes = [(note["step"], note["text"]) for note in read_run(folder).notes]
    assert next(step for step, text in notes if "learning_rate_high" in text) == 1


@pytest.mark.proof
@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize("half", HALVES)
def test_planted_faults_are_named_and_clean_runs_are_clean(tiny_model, record_property, half, planted) -> None:
    found = dict(measure(tiny_model, half, planted))
    clean = found.pop("clean")
    alarms = clean["false_alarms"]
    in_time, runs = (sum(one[name] for one in found.values()) for name in ("in_time", "runs"))
    record_property("named in time", f"{in_time} of {runs}")
    record_property("false alarms", f"{len(alarms)} of {CLEAN} clean runs")
    assert in_time >= 0.95 * runs, {name: one["missed"] for name, one in found.items() if one["missed"]}
    assert clean["runs"] == CLEAN
    assert len(alarms) <= 1, alarms
