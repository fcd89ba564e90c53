"""Callbacks around the optimizer steps: evaluation and the best weights, the run's files, progress output."""

from __future__ import annotations

import gzip
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from rstar2_env.core.episode import Episode

BEST_DIR = "best"


class Evaluation(TrainerCallback):
    """Evaluates at regular intervals on held-out problems and saves the best weights.

    The best weights have the highest pass rate and, among equals, the lowest share of tool errors.

    Args:
        evaluate: Plays the held-out episodes and returns their metrics, the same on every process.
        save: Saves the model and its tokenizer to a folder.
        log: Logs the metrics of the evaluation on a line of their own.
        every: Steps between evaluations.
        folder: The run's folder; the best weights and their score are saved in it.
    """

    def __init__(
        self,
        evaluate: Callable[[], dict[str, float]],
        save: Callable[[str], None],
        log: Callable[[dict[str, float]], None],
        *,
        every: int,
        folder: Path,
    ) -> None:
        self._evaluate, self._save, self._log = evaluate, save, log
        self._every, self._folder = every, folder
        self._last_step = -1
        self.before: dict[str, float] | None = None
        self.after: dict[str, float] | None = None
        self.best_step = 0
        self._best = (-math.inf, -math.inf)

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Evaluate before the first step; in a resumed run, restore the best score and the first metrics instead."""
        score = self._folder / BEST_DIR / "score.json"
        if state.global_step and score.exists():
            kept = json.loads(score.read_text())
            self.best_step, self._best, self.before = kept["step"], tuple(kept["best"]), kept["before"]
            self.after = kept["metrics"]
            return
        self.before = self._run(state)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Evaluate every ``every`` steps and after the last one."""
        if state.global_step % self._every == 0 or state.global_step == state.max_steps:
            # Logging an evaluation marks the step as logged; the step's own line (loss) must still follow.
            due = control.should_log
            self._run(state)
            control.should_log = due

    def _run(self, state: TrainerState) -> dict[str, float]:
        if self._last_step == state.global_step and self.after is not None:
            return self.after
        self._last_step = state.global_step
        figures = self.after = self._evaluate()
        self._log({f"eval/{name}": value for name, value in figures.items()})
        error_share = figures["tool_error_share"]
        score = (figures["pass_rate"], 0.0 if math.isnan(error_share) else -error_share)
        if score > self._best:
            self._best, self.best_step = score, state.global_step
            folder = self._folder / BEST_DIR
            self._save(str(folder))
            if state.is_world_process_zero:
                kept = {"step": self.best_step, "best": score, "metrics": figures, "before": self.before or figures}
                (folder / "score.json").write_text(json.dumps(kept))
        return figures


class RunFiles:
    """The episodes and the metrics of a run, as files in its folder.

    Args:
        folder: The run's folder.
        rank: Rank of this process; each process writes its own episodes.
        keep_episodes: Whether to write episodes.
    """

    def __init__(self, folder: Path, *, rank: int, keep_episodes: bool) -> None:
        self._folder, self._rank, self._keep_episodes = folder, rank, keep_episodes
        folder.mkdir(parents=True, exist_ok=True)

    def episodes(self, name: str, episodes: Iterable[Episode], kept: Callable[[Episode], bool] | None = None) -> None:
        """Write episodes as compressed JSON lines; the file appears only once it is complete.

        Args:
            name: Name of the file without its suffix, such as "train-000010".
            episodes: The episodes to write.
            kept: Tells whether an episode was selected for training; its answer is recorded as ``kept``.
        """
        if not self._keep_episodes:
            return
        folder = self._folder / "episodes"
        folder.mkdir(exist_ok=True)
        path = folder / f"{name}{f'-rank{self._rank}' if self._rank else ''}.jsonl.gz"
        unfinished = path.with_suffix(".part")
        with gzip.open(unfinished, "wt", encoding="utf-8", compresslevel=3) as file:
            for episode in episodes:
                record = episode.record()
                if kept is not None:
                    record["kept"] = kept(episode)
                file.write(json.dumps(record) + "\n")
        os.replace(unfinished, path)

    def metrics(self, step: int, figures: Mapping[str, float]) -> None:
        """Append one line of metrics; NaN is written as null."""
        if self._rank:
            return
        clean = {name: None if math.isnan(value) else value for name, value in figures.items()}
        with open(self._folder / "metrics.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **clean}) + "\n")

    def history(self) -> list[dict[str, float]]:
        """Return the logged metrics, one dict per step; where a resumed run repeated a step, the later values win."""
        path = self._folder / "metrics.jsonl"
        if not path.exists():
            return []
        merged: dict[int, dict[str, float]] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            figures = {name: math.nan if value is None else value for name, value in json.loads(line).items()}
            merged.setdefault(int(figures["step"]), {}).update(figures)
        return [merged[step] for step in sorted(merged)]


_SHOWN = (
    ("rollout/pass_rate", "pass"),
    ("rollout/tool_error_share_correct", "errors in correct"),
    ("rollout/groups_rejected", "rejected"),
    ("rollout/turns", "turns"),
    ("eval/pass_rate", "held-out pass"),
    ("eval/tool_error_share_correct", "held-out errors in correct"),
    ("loss", "loss"),
)


class Console(TrainerCallback):
    """Shows a progress bar on a terminal, and periodic lines of metrics elsewhere.

    Args:
        title: Label of the run.
        files: Receives every logged metric.
        visible: Whether to show anything.
        shown: Pairs of a metric to show and its label.
    """

    def __init__(
        self, title: str, files: RunFiles | None, *, visible: bool, shown: Iterable[tuple[str, str]] = _SHOWN
    ) -> None:
        self._title, self._files, self._visible = title, files, visible
        self._shown = tuple(shown)
        self._bar: Any = None
        self._task: Any = None
        self._printed = 0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Start the progress bar."""
        self._visible = self._visible and state.is_world_process_zero
        if self._visible and sys.stderr.isatty():
            from rich.console import Console as RichConsole
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[figures]}"),
                console=RichConsole(stderr=True),
            )
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=state.max_steps, completed=state.global_step, figures="")

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Write the metrics to the run's files and show the main ones."""
        figures = {name: float(value) for name, value in (logs or {}).items() if isinstance(value, (int, float))}
        if self._files is not None and state.is_world_process_zero:
            self._files.metrics(state.global_step, figures)
        words = "  ".join(
            f"{short} {figures[name]:.3f}"
            for name, short in self._shown
            if name in figures and not math.isnan(figures[name])
        )
        if not (self._visible and words):
            return
        held_out = any(name.startswith("eval/") for name in figures)
        if self._bar is not None:
            self._bar.update(self._task, completed=state.global_step, figures="" if held_out else words)
        every = max(1, state.max_steps // 20)
        if held_out or (self._bar is None and state.global_step >= self._printed + every):
            self._printed = state.global_step if not held_out else self._printed
            line = f"{self._title}  step {state.global_step}/{state.max_steps}  {words}"
            print(line, file=sys.stderr, flush=True) if self._bar is None else self._bar.console.print(line)

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Stop the progress bar."""
        self.close()

    def close(self) -> None:
        """Stop the progress bar, also when training raised an exception."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
