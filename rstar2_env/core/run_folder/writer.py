"""``RunWriter``: writes a run's folder so that it can be read at any moment, even after the run was killed.

Each line is appended in one write; whole files are written under another name and renamed. If a kill leaves an
incomplete end of a file, the reader ignores it, and it is cut off when the run resumes. Not covered: weights and
checkpoints, which the trainer writes into the same folder; a power failure, since the writer does not wait until the
disk has the data (fsync).
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

from rstar2_env.core import trust
from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import RecordFormatError
from rstar2_env.core.files.append_only import append_text, cut_broken_end, whole_lines
from rstar2_env.core.files.json_values import jsonable
from rstar2_env.core.files.outputs import begin_folder, kind_of, replacing
from rstar2_env.core.run_folder.entries import Decision, EpisodeEntry, TokensEntry, training_record
from rstar2_env.core.run_folder.inside import inside
from rstar2_env.core.run_folder.layout import (
    CONFIG_FILE,
    EPISODES,
    EVENTS_FILE,
    FORMAT,
    METRICS_FILE,
    RUN_FILE,
    TOKENS,
    VERSION,
    Kind,
    Split,
    step_file,
    step_files,
)
from rstar2_env.core.run_folder.named_files import digests_of_files
from rstar2_env.core.secret import hidden, redacted
from rstar2_env.core.version import __version__

ExtraKeys: TypeAlias = Callable[[Episode], Mapping[str, Any]]
"""Function that returns further keys for an episode's line, such as the gold answer of its problem."""

EpisodeListener: TypeAlias = Callable[[Split, int, int, Sequence[EpisodeEntry]], object]
"""Function that receives written episodes: split, step, number of the first line in the step's file, episodes."""

_VERSIONS = ("torch", "transformers", "trl", "accelerate", "peft", "vllm", "gymnasium", "numpy")


class RunWriter:
    """Writes the files of a run's folder; any thread may use it.

    Each process of a run has one writer. The first process (rank 0) calls ``begin`` before any process writes. Only the
    first process writes metrics and events; every process writes its own episodes.

    Args:
        folder: The run's folder; it is created.
        kind: Kind of the run.
        rank: Number of this process.
        episodes: Whether to write episodes.
        tokens: Whether to write the tokens of the rows that are trained on.

    Attributes:
        folder: The run's folder.
        told: Called after each write of episodes with the split, the step, the number of the first written line in
            the step's file, and the episodes; ``None`` calls nothing.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        kind: Kind = "training",
        rank: int = 0,
        episodes: bool = True,
        tokens: bool = False,
    ) -> None:
        self.folder = Path(folder)
        self.keeps_tokens = tokens
        self._kind, self._rank, self._keeps_episodes = kind, rank, episodes
        self.told: EpisodeListener | None = None
        self._lines: dict[Path, int] = {}
        self._lock = threading.Lock()

    def begin(
        self, config: Mapping[str, Any], *, resumed: int | None = None, config_file: str = CONFIG_FILE, **more: Any
    ) -> None:
        """Begin a new run in the folder, or resume a run; in processes other than the first, do nothing.

        Resuming removes the data of all steps after ``resumed``. A new run removes the metrics, events, episodes and
        tokens of an earlier run of its kind. A caller that wants to keep the earlier run must call ``check_folder``
        first; a caller that wants to remove all files of the earlier run must call ``begin_folder`` first.

        Args:
            config: The options of the run, in a form from which the run can be repeated.
            resumed: Step of the checkpoint that the run resumes from; ``None`` for a new run.
            config_file: Name of the file with the options.
            **more: Further keys of the event ``started`` or ``resumed``.

        Raises:
            ConfigurationError: The folder holds files that no run of this kind wrote, or a file of the run that is
                resumed is a link out of the folder.
            RecordFormatError: A line of the metrics of the run that is resumed is not valid.
        """
        if self._rank:
            return
        names = [RUN_FILE, config_file, METRICS_FILE, EVENTS_FILE]
        if resumed is not None:
            for name in names:
                inside(self.folder, self.folder / name)
        names += [f"{place}/*.jsonl{gz}" for place in (EPISODES, TOKENS) for gz in ("", ".gz")]
        begin_folder(self.folder, self._kind, *names, resume=resumed is not None or kind_of(self.folder) == self._kind)
        self._cut(-1 if resumed is None else resumed)
        identity = {"format": FORMAT, "version": VERSION, "kind": self._kind, "config": config_file}
        self._replace(RUN_FILE, json.dumps(identity, indent=2) + "\n")
        text = json.dumps(redacted(jsonable(config)), indent=2)
        self._replace(config_file, text + "\n")
        recorded = json.loads(text)
        trust.record(self.folder, recorded)
        begun = "started" if resumed is None else "resumed"
        self.event(begun, resumed or 0, versions=versions(), files=digests_of_files(recorded), **more)

    def metrics(self, step: int, figures: Mapping[str, float]) -> None:
        """Append a line of metrics; only the first process writes the line.

        Args:
            step: Number of optimizer steps done.
            figures: Numbers by name; a number that is not finite is written as null.
        """
        if not self._rank:
            self._append(self.folder / METRICS_FILE, [{"step": step, **jsonable(figures)}])

    def event(self, event: str, step: int, **more: Any) -> None:
        """Append an event with the current time; only the first process writes the event.

        Args:
            event: Kind of the event: ``started``, ``resumed``, ``saved``, ``checkpoint``, ``evaluation``, ``note``,
                ``interrupted``, ``failed``, ``finished``, or any other word.
            step: Number of optimizer steps done.
            **more: Further keys.
        """
        if not self._rank:
            now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            self._append(self.folder / EVENTS_FILE, [{"event": event, "time": now, "step": step, **jsonable(more)}])

    def train(
        self,
        step: int,
        groups: Sequence[Sequence[Episode]],
        decisions: Sequence[Sequence[Decision]] | None = None,
        *,
        extra: ExtraKeys = lambda episode: {},
    ) -> None:
        """Append groups of a training step, with the decision about each episode.

        Args:
            step: The optimizer step for which the groups were played, from 1.
            groups: All episodes of each group, selected or not.
            decisions: Decision about each episode, in the shape of ``groups``; ``None`` means that no episode was kept.
            extra: Function that returns further keys for the line of an episode.
        """
        if not self._keeps_episodes:
            return
        path = self.folder / EPISODES / step_file("train", step, self._rank)
        for at, group in enumerate(groups):
            decided: Sequence[Decision | None] = [None] * len(group) if decisions is None else decisions[at]
            entries = [
                EpisodeEntry(episode, step, member, decision, jsonable(extra(episode)))
                for member, (episode, decision) in enumerate(zip(group, decided, strict=True))
            ]
            rows = [
                {**training_record(entry.episode, step, entry.member, entry.decision), **entry.more}
                for entry in entries
            ]
            self._tell("train", step, self._append_step(path, rows), entries)

    def held_out(
        self, step: int, episodes: Iterable[Episode], *, extra: ExtraKeys = lambda episode: {}, **more: Any
    ) -> None:
        """Append episodes of an evaluation.

        Args:
            step: Number of optimizer steps done before the evaluation.
            episodes: The episodes; each has its number in the evaluation as its ``group``.
            extra: Function that returns further keys for the line of an episode.
            **more: Further keys with the same value in all lines.
        """
        if self._keeps_episodes:
            records, entries = [], []
            for episode in episodes:
                record = episode.record()
                further = {**jsonable(extra(episode)), **jsonable(more)}
                records.append({"index": record.pop("group"), **record, **further})
                entries.append(EpisodeEntry(episode, step, more=further))
            line = self._append_step(self.folder / EPISODES / step_file("eval", step, self._rank), records)
            self._tell("eval", step, line, entries)

    def tokens(self, entries: Iterable[TokensEntry]) -> None:
        """Append the tokens of the rows that a step trained on, if this writer was created with ``tokens``."""
        if not self.keeps_tokens:
            return
        steps: dict[int, list[dict[str, Any]]] = {}
        for entry in entries:
            steps.setdefault(entry.step, []).append(entry.record())
        for step, records in steps.items():
            self._append_step(self.folder / TOKENS / step_file("train", step, self._rank), records)

    def _tell(self, split: Split, step: int, line: int, entries: Sequence[EpisodeEntry]) -> None:
        if self.told is not None:
            self.told(split, step, line, entries)

    def _append_step(self, path: Path, records: Sequence[Mapping[str, Any]]) -> int:
        """Append lines to the file of a step; return the number of the first appended line, from 0."""
        with self._lock:
            # The file of a step that is played again after a kill is started from scratch.
            truncate = path not in self._lines
            line = self._lines.get(path, 0)
            self._lines[path] = line + len(records)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._append(path, records, truncate=truncate)
        return line

    def _append(self, path: Path, records: Sequence[Mapping[str, Any]], *, truncate: bool = False) -> None:
        text = hidden("".join(_line(record) for record in records))
        with self._lock:
            append_text(path, text, truncate=truncate)

    def _replace(self, name: str, text: str) -> None:
        with replacing(self.folder / name) as partial:
            partial.write_text(text, "utf-8")

    def _cut(self, last: int) -> None:
        """Remove metrics, episodes and tokens of all steps after ``last``; if ``last`` is negative, also all events."""
        events, figures = self.folder / EVENTS_FILE, self.folder / METRICS_FILE
        if last < 0:
            events.unlink(missing_ok=True)
            figures.unlink(missing_ok=True)
        cut_broken_end(events)
        if figures.exists():
            kept = [line for line in whole_lines(figures) if _step_of(line, figures) <= last]
            self._replace(METRICS_FILE, b"".join(line + b"\n" for line in kept).decode("utf-8"))
        for name in (EPISODES, TOKENS):
            for file in step_files(self.folder / name):
                if file.step > last:
                    file.path.unlink()


def _line(record: Mapping[str, Any]) -> str:
    try:
        return json.dumps(record, allow_nan=False) + "\n"
    except ValueError:  # a number that is not finite
        return json.dumps(jsonable(record), allow_nan=False) + "\n"


def _step_of(line: bytes, path: Path) -> int:
    try:
        return int(json.loads(line)["step"])
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        raise RecordFormatError(f"{path} contains a line without a valid step: {line[:100]!r}.") from error


def versions() -> dict[str, str]:
    """Return the versions of this package and of other packages that affect a run's results, without importing them."""
    found = {"rstar2-env": __version__}
    for name in _VERSIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
