"""``diagnosis``: notes findings of a run in progress, once each, in the first process alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from made_runs import MadeRun, write_training

from rstar2_env.core.run_folder import read_run
from rstar2_env.testing.training.plain_run import PlainRun
from rstar2_env.trainers.hooks.diagnosis import DiagnosisHook


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 12 steps."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    write_training(folder, MadeRun(steps=12, eval_every=0))
    return folder


def notes(folder: Path, *, first: bool = True, **figures: float) -> list[tuple[int, str]]:
    """The notes of steps 13 to 24, whose figures are those of step 12 with changes."""
    run, hook = PlainRun(24), DiagnosisHook()
    run.step = 12
    hook.bind(run)
    state = SimpleNamespace(is_world_process_zero=first, global_step=12)
    hook.on_train_begin(SimpleNamespace(output_dir=str(folder)), state, SimpleNamespace())
    last = read_run(folder).metrics()[-1]
    for step in range(13, 25):
        run.step = step
        own = {**last, **(figures if step < 18 else {})}
        hook.on_log(None, state, SimpleNamespace(), logs={name: own[name] for name in own if name != "step"})
        hook.on_log(None, state, SimpleNamespace(), logs={"seconds/rollout": 1.0})
    return [(step, text) for step, did, text in run.done if did == "note"]


def test_a_finding_is_noted_once_when_it_appears_and_once_when_it_ends(made: Path) -> None:
    (begun, said), (ended, end) = notes(made, grad_norm=0.0)
    assert (begun, ended) == (15, 22)
    assert said.startswith("Finding (error): The gradient is zero (gradient_zero, since step 13).")
    assert "Change" not in said  # the run follows both remedies already
    assert end == "Finding ended: The gradient is zero (gradient_zero, step 13 to 17)."


def test_a_note_names_the_first_remedy_that_would_change_the_run(made: Path) -> None:
    assert "Change: --set loss.entropy.coef=0.001" in notes(made, **{"policy/entropy": 0.01})[0][1]


def test_a_run_without_findings_has_no_note(made: Path) -> None:
    assert notes(made) == []


def test_only_the_first_process_looks(made: Path) -> None:
    assert notes(made, first=False, grad_norm=0.0) == []


def test_an_error_of_a_check_ends_the_diagnosis_and_not_the_run(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("tokens")

    monkeypatch.setattr("rstar2_env.trainers.hooks.diagnosis.LiveDiagnosis.add", broken)
    assert [text for _, text in notes(made)] == [
        "the diagnosis of the run failed with an error and is switched off; training continues: KeyError('tokens')"
    ]
