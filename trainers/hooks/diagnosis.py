"""``diagnosis``: logs the findings of ``rstar2 diagnose`` while the run is in progress.

The hook reads logged metrics and this process's episodes as they are written, and other processes' episodes from the
run's folder; it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rstar2_env.core.run_folder import EpisodeEntry
from rstar2_env.core.run_folder.layout import RUN_FILE, Split
from rstar2_env.diagnosis.live import Change, LiveDiagnosis

from .base import HOOKS, RunHook


@dataclass
class DiagnosisHook(RunHook):
    """Log each finding of ``rstar2 diagnose`` when it appears and when it ends.

    A finding is one line in the log and an event ``note`` in the run's folder, with its severity, its evidence, up to
    three episodes that show it, and the option to change first. Only the first process runs the checks. Every run has
    this hook unless its list of hooks is replaced (``hook=[]``).
    """

    def __post_init__(self) -> None:
        """Set the initial state."""
        super().__post_init__()
        self._live: LiveDiagnosis | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start the diagnosis from the steps that the run's folder records; do nothing without a recorded run."""
        if state.is_world_process_zero and (Path(args.output_dir) / RUN_FILE).is_file():
            with self._ending():
                self._live = LiveDiagnosis(args.output_dir)

    def wrote(self, split: Split, step: int, line: int, entries: Sequence[EpisodeEntry]) -> None:
        """Pass the episodes that this process has just recorded to the diagnosis; see ``ReadsEpisodes``."""
        if self._live is not None:
            with self._ending():
                self._live.wrote(split, step, line, entries)

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Pass the metrics of an evaluation to the diagnosis, and log findings that appeared or ended with them."""
        if self._live is not None:
            with self._ending():
                self._note(self._live.evaluated(self._run.step, kwargs["metrics"]))

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        """Check the step that was logged, and log findings that appeared or ended."""
        logged = logs or {}
        if self._live is None or "loss" not in logged:
            return
        with self._ending():
            self._note(self._live.add(self._run.step, logged))

    def _note(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self._run.note(change.line)

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Context manager that switches off the diagnosis if its block raises an error, so that the run continues."""
        try:
            yield
        except Exception as error:
            self._live = None
            self._run.note(
                f"the diagnosis of the run failed with an error and is switched off; training continues: {error!r}"
            )


HOOKS.register("diagnosis", DiagnosisHook)
