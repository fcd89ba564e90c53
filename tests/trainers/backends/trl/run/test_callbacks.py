"""What the callbacks of a run note in its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import TrainerControl, TrainerState

from rstar2_env.core.run_folder import RunWriter, read_run
from rstar2_env.trainers.backends.trl.run.callbacks import Console, Evaluation, RunEvents


def state(step: int, *, first: bool = True) -> TrainerState:
    return TrainerState(global_step=step, is_world_process_zero=first, max_steps=9)


def test_a_checkpoint_is_noted_with_the_samplers_state(tmp_path: Path) -> None:
    arguments: Any = None
    for rank in (0, 1):
        files = RunWriter(tmp_path, rank=rank)
        files.begin({})
        (tmp_path / "checkpoint-4").mkdir(exist_ok=True)
        events = RunEvents(files, lambda: {"sampler": {"cursor": np.int64(7)}})
        events.on_save(arguments, state(4, first=not rank), TrainerControl())
    (checkpoint,) = read_run(tmp_path).checkpoints
    assert json.loads((tmp_path / checkpoint.more["sampler"]).read_text()) == {"sampler": {"cursor": 7}}


def test_the_totals_that_transformers_logs_at_the_end_are_no_figures_of_the_last_step(tmp_path: Path) -> None:
    files = RunWriter(tmp_path)
    files.begin({})
    console = Console("run", files, visible=False)
    arguments: Any = None
    console.on_log(arguments, state(3), TrainerControl(), logs={"loss": 0.5})
    console.on_log(arguments, state(3), TrainerControl(), logs={"train_runtime": 12.0, "train_loss": 0.4})
    run = read_run(tmp_path)
    assert run.metrics() == [{"step": 3, "loss": 0.5}]
    assert run.events[-1]["figures"] == {"train_runtime": 12.0, "train_loss": 0.4}


def test_the_last_step_is_shown_even_where_few_lines_are(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console("run", None, visible=True)
    arguments: Any = None
    for step in range(1, 46):
        told = TrainerState(global_step=step, is_world_process_zero=True, max_steps=45)
        console.on_log(arguments, told, TrainerControl(), logs={"loss": 0.5})
    shown = [line.split()[2] for line in capsys.readouterr().err.splitlines()]
    assert shown[-2:] == ["44/45", "45/45"]
    assert len(shown) == 23


class Evaluated:
    """An evaluation whose pass rates are given, in a run's folder that is written as a run writes it."""

    def __init__(
        self,
        folder: Path,
        rates: dict[int, float],
        *,
        resumed: int | None = None,
        every: int = 1,
        interrupted: bool = False,
    ) -> None:
        self.files = RunWriter(folder)
        self.files.begin({}, resumed=resumed)
        self.rates, self.step = rates, resumed or 0
        self.callback = Evaluation(
            self.evaluate, self.save, self.log, every=every, folder=folder, interrupted=lambda: interrupted
        )

    def evaluate(self) -> dict[str, float]:
        return {"pass_rate": self.rates[self.step], "tool_error_share": float("nan")}

    def save(self, folder: str) -> None:
        self.files.event("saved", self.step, path=Path(folder).name)

    def log(self, figures: dict[str, float]) -> None:
        plain = {name.removeprefix("eval/"): value for name, value in figures.items()}
        self.files.event("evaluation", self.step, figures=plain)

    def until(self, last: int) -> Evaluation:
        arguments: Any = None
        self.callback.on_train_begin(arguments, state(self.step), TrainerControl())
        for step in range(self.step + 1, last + 1):
            self.step = step
            self.callback.on_step_end(arguments, state(step), TrainerControl())
        return self.callback


RATES = {0: 0.1, 1: 0.3, 2: 0.2, 3: 0.5, 4: 0.4}


def test_the_best_weights_are_those_of_the_highest_pass_rate(tmp_path: Path) -> None:
    callback = Evaluated(tmp_path, RATES).until(4)
    assert (callback.best_step, read_run(tmp_path).weights) == (3, {"best": 3})
    assert callback.before is not None
    assert callback.after is not None
    assert (callback.before["pass_rate"], callback.after["pass_rate"]) == (0.1, 0.4)


@pytest.mark.parametrize(("interrupted", "evaluated"), [(False, [0, 2, 3]), (True, [0, 2])])
def test_final_weights_are_evaluated_once_unless_a_signal_ended_the_run(
    interrupted: bool, evaluated: list[int], tmp_path: Path
) -> None:
    arguments: Any = None
    callback = Evaluated(tmp_path, RATES, every=2, interrupted=interrupted).until(3)
    for _ in range(2):
        callback.on_train_end(arguments, state(3), TrainerControl())
    assert [one.step for one in read_run(tmp_path).evaluations] == evaluated
    assert callback.best_step == evaluated[-1 if not interrupted else 1]


def test_a_run_that_resumes_knows_its_best_step(tmp_path: Path) -> None:
    Evaluated(tmp_path, RATES).until(2)
    callback = Evaluated(tmp_path, {**RATES, 3: 0.25, 4: 0.2}, resumed=2).until(4)
    assert (callback.best_step, read_run(tmp_path).weights) == (1, {"best": 1})
    assert callback.before is not None
    assert callback.before["pass_rate"] == 0.1


def test_the_best_weights_of_a_lost_step_are_replaced(tmp_path: Path) -> None:
    Evaluated(tmp_path, RATES).until(3)
    callback = Evaluated(tmp_path, {**RATES, 3: 0.05, 4: 0.01}, resumed=2).until(4)
    assert (callback.best_step, read_run(tmp_path).weights) == (3, {"best": 3})
    assert [one.figures["pass_rate"] for one in read_run(tmp_path).evaluations] == [0.1, 0.3, 0.2, 0.05, 0.01]
