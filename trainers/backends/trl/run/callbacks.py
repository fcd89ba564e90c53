"""Callbacks of the training loop: evaluation and the best weights, the run's events, progress output."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rstar2_env.core.files.json_values import jsonable
from rstar2_env.core.files.outputs import list_files
from rstar2_env.core.progress import ReportProgress, progress, say
from rstar2_env.core.run_folder import RunWriter, read_run

BEST_DIR = "best"
SAMPLER_FILE = "sampler.json"


class Evaluation(TrainerCallback):
    """Evaluates at regular intervals on held-out problems and saves the best weights.

    The best weights have the highest pass rate and, among equal pass rates, the lowest share of tool errors.

    Args:
        evaluate: Plays the held-out episodes and returns their metrics, the same on every process.
        save: Saves the model and its tokenizer to a folder.
        log: Logs the metrics of the evaluation on a separate line.
        every: Number of steps between evaluations.
        folder: The run's folder, in which the best weights are saved.
        interrupted: Returns whether a signal ended the training, the same on every process. The final evaluation is
            then left to the resumed run.
    """

    def __init__(
        self,
        evaluate: Callable[[], dict[str, float]],
        save: Callable[[str], None],
        log: Callable[[dict[str, float]], None],
        *,
        every: int,
        folder: Path,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._evaluate, self._save, self._log = evaluate, save, log
        self._every, self._folder, self._interrupted = every, folder, interrupted
        self._last_step = -1
        self.before: dict[str, float] | None = None
        self.after: dict[str, float] | None = None
        self.best_step = 0
        self._best = (-math.inf, -math.inf)

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Evaluate before the first step; a resumed run reads its earlier evaluations from its folder."""
        evaluations = read_run(self._folder).evaluations if state.global_step else []
        if not evaluations:
            self.before = self._run(state)
            return
        self.before, self.after = dict(evaluations[0].figures), dict(evaluations[-1].figures)
        self._last_step = evaluations[-1].step
        # If the best weights were saved in a step that was lost, the next evaluation replaces them.
        best_step = read_run(self._folder).weights.get(BEST_DIR)
        for one in evaluations:
            if one.step == best_step:
                self.best_step, self._best = best_step, _score(one.figures)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Evaluate after each ``every``-th step and after the last step."""
        if state.global_step % self._every == 0 or state.global_step == state.max_steps:
            # Logging an evaluation marks the step as logged, but the step's own line (loss) must still follow.
            due = control.should_log
            self._run(state)
            control.should_log = due

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Evaluate the final weights if a hook ended the run between two evaluations."""
        if not self._interrupted():
            self._run(state)

    def _run(self, state: TrainerState) -> dict[str, float]:
        if self._last_step == state.global_step and self.after is not None:
            return self.after
        self._last_step = state.global_step
        figures = self.after = self._evaluate()
        self._log({f"eval/{name}": value for name, value in figures.items()})
        if (score := _score(figures)) > self._best:
            self._best, self.best_step = score, state.global_step
            self._save(str(self._folder / BEST_DIR))
        return figures


def _score(figures: Mapping[str, float]) -> tuple[float, float]:
    """Return an evaluation's sort key, largest for the best: the pass rate, then minus the share of tool errors."""
    errors = figures["tool_error_share"]
    return figures["pass_rate"], 0.0 if math.isnan(errors) else -errors


class RunEvents(TrainerCallback):
    """Records the checkpoints of a run, and a note at its beginning, as events in its folder.

    Args:
        files: The run's folder.
        sampler: Returns the state of the collector and its sampler. It is written to the checkpoint as JSON, for
            inspection only.
        note: Returns the note; ``None`` for none.
    """

    def __init__(
        self,
        files: RunWriter,
        sampler: Callable[[], Any] | None = None,
        note: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._files, self._sampler, self._note = files, sampler, note

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Write the run's note, if there is one, as an event of the run."""
        if state.is_world_process_zero and (note := self._note()) is not None:
            self._files.event("note", state.global_step, text=note)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Record a checkpoint once it is written."""
        path = f"checkpoint-{state.global_step}"
        more = {}
        if self._sampler is not None and state.is_world_process_zero:
            more["sampler"] = f"{path}/{SAMPLER_FILE}"
            list_files(self._files.folder, more["sampler"])
            (self._files.folder / more["sampler"]).write_text(json.dumps(jsonable(self._sampler())), "utf-8")
        self._files.event("checkpoint", state.global_step, path=path, **more)


_SHOWN = (
    ("rollout/pass_rate", "pass"),
    ("rollout/tool_error_share_correct", "errors in correct episodes"),
    ("rollout/groups_rejected", "rejected"),
    ("rollout/turns", "turns"),
    ("eval/pass_rate", "held-out pass"),
    ("eval/tool_error_share_correct", "held-out errors in correct episodes"),
    ("loss", "loss"),
)


class Console(TrainerCallback):
    """Shows the progress of the steps, and lines of metrics.

    Args:
        title: Label of the run.
        files: Receives every logged metric.
        visible: Whether to show anything.
        shown: Pairs of a metric to show and its label; values above 1000 are shown without decimals.
    """

    def __init__(
        self, title: str, files: RunWriter | None, *, visible: bool, shown: Iterable[tuple[str, str]] = _SHOWN
    ) -> None:
        self._title, self._files, self._visible = title, files, visible
        self._shown = tuple(shown)
        self._opened = ExitStack()
        self._report: ReportProgress = lambda done, total, note="": None
        self._printed = 0
        self._words = ""
        self._passes = 0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Start showing the progress."""
        self._visible = self._visible and state.is_world_process_zero
        shown = progress(self._title, total=state.max_steps, done=state.global_step, show=self._visible)
        self._report = self._opened.enter_context(shown)
        self._report(state.global_step, state.max_steps)

    def on_substep_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Show the number of finished forward passes of the step."""
        self._passes += 1
        passes = f"pass {self._passes} of {args.gradient_accumulation_steps}"
        self._report(state.global_step, state.max_steps, "  ".join(part for part in (passes, self._words) if part))

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Show the number of the step."""
        self._passes = 0
        self._report(state.global_step, state.max_steps, self._words)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Write the metrics to the run's files and show the main metrics."""
        figures = {name: float(value) for name, value in (logs or {}).items() if isinstance(value, (int, float))}
        if self._files is not None and state.is_world_process_zero:
            if "train_runtime" in figures:  # totals, which transformers logs at the end with the last step's number
                self._files.event("trained", state.global_step, figures=figures)
            else:
                self._files.metrics(state.global_step, figures)
        words = "  ".join(
            f"{short} {figures[name]:{'.0f' if abs(figures[name]) >= 1000 else '.3f'}}"
            for name, short in self._shown
            if name in figures and not math.isnan(figures[name])
        )
        if not (self._visible and words):
            return
        held_out = any(name.startswith("eval/") for name in figures)
        if not held_out:
            self._words = words
        every = max(1, state.max_steps // 20)
        due = state.global_step >= self._printed + every or self._printed < state.global_step == state.max_steps
        if held_out or due:
            self._printed = state.global_step if not held_out else self._printed
            say(f"{self._title}  step {state.global_step}/{state.max_steps}  {words}")

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Stop showing the progress."""
        self.close()

    def close(self) -> None:
        """Stop showing the progress; call it also after an exception."""
        self._opened.close()
