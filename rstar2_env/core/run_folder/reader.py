"""``read_run``: reads a run's folder, even while the run is being written, or after it was killed.

Data is read on access, so that a ``Run`` follows a run in progress. Incomplete ends of files are left out. Not covered:
weights.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from rstar2_env.core.errors import ConfigurationError, RecordFormatError
from rstar2_env.core.files.append_only import whole_lines
from rstar2_env.core.files.given_path import check_given
from rstar2_env.core.run_folder.entries import EpisodeEntry, TokensEntry, entry_of
from rstar2_env.core.run_folder.inside import inside, is_plain_name
from rstar2_env.core.run_folder.layout import (
    CONFIG_FILE,
    EPISODES,
    EVENTS_FILE,
    FORMAT,
    METRICS_FILE,
    RUN_FILE,
    TOKENS,
    VERSION,
    Split,
    step_files,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint of a run.

    Attributes:
        step: Optimizer step after which it was written.
        path: Folder of the checkpoint.
        more: Other keys of the event that recorded it.
    """

    step: int
    path: Path
    more: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EvaluationFigures:
    """The metrics of an evaluation after a training step, by name; NaN for a metric without data."""

    step: int
    figures: Mapping[str, float]


class Run:
    """A run, read from its folder or from the single file of an evaluation.

    Args:
        path: The folder, or an evaluation's file of JSON lines.

    Attributes:
        path: The folder or file.
        kind: ``training``, ``sft``, ``evaluation`` or ``pipeline``.

    Raises:
        ConfigurationError: The path is not a run, or has a later version of the format.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file = self.path.is_file()
        identity = {"kind": "evaluation"} if self._file else _identity(self.path)
        self.kind = str(identity["kind"])
        self._config_file = identity.get("config")

    @property
    def config(self) -> dict[str, Any]:
        """The options of the run.

        Raises:
            ConfigurationError: The file of the options cannot be read, or the name that the run records for it is not a
                plain file name.
        """
        if self._file:
            first = next(_records(self.path), {})
            run: dict[str, Any] = first.get("run", {})
            return run
        name = self._config_file
        if not isinstance(name, str) or not is_plain_name(name):
            raise ConfigurationError(
                f"The key 'config' of the file {self.path / RUN_FILE} must be the name of a file in the same folder, "
                f"such as {CONFIG_FILE!r}, not {repr(name)[:100]}."
            )
        return _object(self._place(name))

    @property
    def recipe(self) -> dict[str, Any]:
        """The resolved recipe of a training run: its ``name``, and the part of each slot with its options."""
        config = self.config
        parts = config.get("parts", {})
        return {"name": config.get("trainer", ""), **(parts if isinstance(parts, dict) else {})}

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events of the run, in order, with ``event``, ``time`` (UTC) and ``step``."""
        return [] if self._file else list(_parsed(self._place(EVENTS_FILE), _event))

    @property
    def finished(self) -> bool:
        """Whether the run finished; a run that is in progress, was interrupted or was killed has not finished."""
        events = self.events
        return bool(events) and events[-1].get("event") == "finished"

    @property
    def steps(self) -> list[int]:
        """Every step with metrics or training episodes, ascending."""
        figures = {_step(line) for line in self.metrics()}
        return sorted(figures | {file.step for file in step_files(self.path / EPISODES, "train")})

    def metrics(self) -> list[dict[str, float]]:
        """The metrics as one mapping per step, with the key ``step``; a later line of a step overrides earlier ones.

        A metric without data is NaN.
        """
        merged: dict[int, dict[str, float]] = {}
        for line in () if self._file else _parsed(self._place(METRICS_FILE), _metrics):
            merged.setdefault(_step(line), {}).update(line)
        return [merged[step] for step in sorted(merged)]

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """The checkpoints whose folders still exist, sorted by step."""
        found = {
            event["step"]: Checkpoint(event["step"], self.path / event["path"], _beside(event, "path"))
            for event in self._lasting("checkpoint")
        }
        return [found[step] for step in sorted(found) if found[step].path.is_dir()]

    @property
    def weights(self) -> dict[str, int]:
        """Optimizer step of each set of weights that the run saved, by the path of the weights in the run's folder.

        Weights of a step that a resume dropped are left out, even if they overwrote the weights of an earlier, kept
        step.
        """
        found: dict[str, int] = {}
        for event in self.events:
            if event.get("event") == "saved":
                found[event["path"]] = event["step"]
            elif event.get("event") == "resumed":
                found = {path: step for path, step in found.items() if step <= event["step"]}
        return found

    @property
    def evaluations(self) -> list[EvaluationFigures]:
        """The metrics of all evaluations, sorted by step."""
        found = {}
        for event in self._lasting("evaluation"):
            found[event["step"]] = EvaluationFigures(event["step"], _figures(event["figures"]))
        return [found[step] for step in sorted(found)]

    @property
    def notes(self) -> list[dict[str, Any]]:
        """The notes of hooks, with ``step`` and ``text``, in order, except notes of steps that a resume dropped."""
        return self._lasting("note")

    def episodes(self, step: int) -> list[EpisodeEntry]:
        """Return the training episodes of a step, from all processes, sorted by round, group and member."""
        return sorted(self._entries("train", step), key=_place)

    def groups(self, step: int) -> list[list[EpisodeEntry]]:
        """Return the training episodes of a step by group; groups that replace unusable groups come last."""
        groups: dict[tuple[int, int], list[EpisodeEntry]] = {}
        for entry in self.episodes(step):
            groups.setdefault(_place(entry)[:2], []).append(entry)
        return list(groups.values())

    def held_out(self, step: int = 0) -> list[EpisodeEntry]:
        """Return the episodes of the evaluation after a step (0 for ``rstar2 eval``), sorted by episode number."""
        return sorted(self._entries("eval", step), key=_place)

    def each_held_out(self, step: int = 0) -> Iterator[EpisodeEntry]:
        """Yield the episodes of the evaluation after a step, one at a time, in the order in which they ended."""
        return self._entries("eval", step)

    @property
    def evaluated_steps(self) -> list[int]:
        """The steps for which ``held_out`` has episodes."""
        if self._file:
            return [0]
        return sorted({file.step for file in step_files(self.path / EPISODES, "eval")})

    def tokens(self, step: int) -> list[TokensEntry]:
        """Return the tokens of the rows that a step trained on; empty if the run did not keep them."""
        found: list[TokensEntry] = []
        for file in step_files(self.path / TOKENS, "train", step):
            found += _parsed(inside(self.path, file.path), TokensEntry.from_record)
        return sorted(found, key=lambda entry: (entry.group, entry.member))

    def placed(
        self, step: int, split: Split = "train", *, without: int | None = None
    ) -> Iterator[tuple[int, int, EpisodeEntry]]:
        """Yield (process, line, episode) for each episode of a step, in the order of the files.

        ``process`` is the number of the process that wrote the file, and ``line`` the episode's line in it, from 0.

        Args:
            step: The step.
            split: ``"train"`` or ``"eval"``.
            without: Number of a process whose episodes are left out.
        """
        for rank, path in self._files(split, step):
            if rank == without:
                continue
            for line, entry in enumerate(_parsed(path, lambda record: entry_of(record, step))):
                yield rank, line, entry

    def _entries(self, split: Split, step: int) -> Iterator[EpisodeEntry]:
        return (entry for _, _, entry in self.placed(step, split))

    def _files(self, split: Split, step: int) -> list[tuple[int, Path]]:
        """Return the episode files of a split and step, each with the number of the process that wrote it."""
        if self._file:
            return [(0, self.path)] if (split, step) == ("eval", 0) else []
        chosen = step_files(self.path / EPISODES, split, step)
        return [(file.rank, inside(self.path, file.path)) for file in chosen]

    def _place(self, name: str) -> Path:
        return inside(self.path, self.path / name)

    def _lasting(self, name: str) -> list[dict[str, Any]]:
        """Return the events of one kind, except events of steps that a resume dropped."""
        lasting: list[dict[str, Any]] = []
        for event in self.events:
            if event.get("event") == "resumed":
                lasting = [earlier for earlier in lasting if earlier["step"] <= event["step"]]
            elif event.get("event") == name:
                lasting.append(event)
        return lasting

    def __repr__(self) -> str:
        """Return the run's path and kind."""
        return f"Run({str(self.path)!r}, kind={self.kind!r})"


def read_run(path: str | os.PathLike[str]) -> Run:
    """Read the folder of a run, or the single file of an evaluation, without changing it.

    Args:
        path: The folder, or an evaluation's file of JSON lines.

    Raises:
        ConfigurationError: The path is not a run, has a later version of the format, or is a file without episodes.
    """
    run = Run(path)
    if run.path.is_file():
        _check_episodes(run)
    return run


def _check_episodes(run: Run) -> None:
    """Check that a file begins with an episode.

    Raises:
        ConfigurationError: The file is empty, or its first line is not an episode; the message names the line's keys.
    """
    expected = "expected the folder of a run, or a file of episodes that rstar2 eval --out NAME.jsonl wrote"
    try:
        if next(iter(run.each_held_out()), None) is None:
            raise ConfigurationError(f"The file {run.path} does not contain a complete line: {expected}.")
    except RecordFormatError as error:
        try:
            record = json.loads(next(whole_lines(run.path)))
        except (ValueError, RecursionError):
            record = None
        there = f"its first line has the keys {', '.join(record)[:200]}" if isinstance(record, dict) else str(error)
        raise ConfigurationError(
            f"The file {run.path} does not contain episodes: {there.removesuffix('.')}; {expected}."
        ) from error


def _identity(folder: Path) -> dict[str, Any]:
    file = inside(folder, folder / RUN_FILE)
    if not file.is_file():
        check_given(folder, "give the folder of a run")
        raise ConfigurationError(f"{folder} is not the folder of a run: it does not contain {RUN_FILE}.")
    identity = _object(file)
    if identity.get("format") != FORMAT or not isinstance(identity.get("version"), int) or "kind" not in identity:
        raise ConfigurationError(
            f"The file {file} does not describe a run: expected the format {FORMAT!r} and its version."
        )
    if identity["version"] > VERSION:
        raise ConfigurationError(
            f"The folder {folder} was written in version {identity['version']} of the format; this "
            f"version of rstar2-env reads versions up to {VERSION}. Update rstar2-env to read the run."
        )
    return identity


def _object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"The file {path} cannot be read: {error}.") from error
    if not isinstance(value, dict):
        raise ConfigurationError(f"The file {path} must contain one JSON object.")
    return value


def _records(path: Path) -> Iterator[dict[str, Any]]:
    return _parsed(path, lambda record: dict(record))


def _is_number(value: Any) -> bool:
    """Whether a value is a number that ``float`` can represent; false for an integer that is too large for it."""
    try:
        return isinstance(value, (int, float)) and float(value) is not None
    except OverflowError:
        return False


def _is_step(value: Any) -> bool:
    return _is_number(value) and abs(value) < 1 << 63


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


_Rule: TypeAlias = tuple[Callable[[Any], bool], str]
_FIGURE: _Rule = (lambda value: value is None or _is_number(value), "a number or null")
_VALUES: Mapping[str, _Rule] = {
    "event": (_is_text, "a text"),
    "step": (_is_step, "a number"),
    "time": (_is_text, "a text"),
    "path": (_is_text, "a text"),
    "text": (_is_text, "a text"),
    "figures": (_is_mapping, "a mapping"),
    "versions": (_is_mapping, "a mapping"),
    "files": (_is_mapping, "a mapping"),
    "processes": (_is_step, "a number"),
    "stage": (lambda value: _is_text(value) and is_plain_name(value), "the name of a folder"),
    "fingerprint": (_is_text, "a text"),
    "made_from": (_is_mapping, "a mapping"),
    "outputs": (_is_mapping, "a mapping"),
    "seconds": (_is_number, "a number"),
}
"""For each key that any event may have, the check of its value; a key that is not listed may hold any value."""
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "checkpoint": ("path",),
    "saved": ("path",),
    "evaluation": ("figures",),
    "note": ("text",),
    "stage_began": ("stage", "fingerprint"),
    "stage_ended": ("stage", "fingerprint", "outputs"),
    "stage_taken": ("stage", "fingerprint"),
    "stage_replaced": ("stage",),
}
"""The keys that an event must have in addition to ``event`` and ``step``, by the kind of the event."""


def _check(record: Mapping[str, Any], name: str, rule: _Rule, place: str = "") -> None:
    is_valid, expected = rule
    if not is_valid(record.get(name)):
        raise RecordFormatError(
            f"expected {expected} under the key {place + name!r}, not {repr(record.get(name))[:100]}."
        )


def _step(record: Mapping[str, Any]) -> int:
    _check(record, "step", _VALUES["step"])
    return int(record["step"])


def _figures(record: Any, place: str = "") -> dict[str, Any]:
    """Check a mapping of names to numbers; return it with NaN for null. Error messages put ``place`` before a name."""
    figures = dict(record)
    for name in figures:
        _check(figures, name, _FIGURE, place)
    return {name: math.nan if value is None else value for name, value in figures.items()}


def _metrics(record: Any) -> dict[str, Any]:
    line = dict(record)
    _step(line)
    return _figures(line)


def _event(record: Any) -> dict[str, Any]:
    """Check an event's values under the keys that this package reads; other keys may have any value."""
    event = dict(record)
    _check(event, "event", _VALUES["event"])
    for name in ("step", *_NEEDED.get(event["event"], ()), *filter(_VALUES.__contains__, event)):
        _check(event, name, _VALUES[name])
    event["step"] = _step(event)
    if event["event"] == "evaluation":
        _figures(event["figures"], "figures.")
    return event


def _parsed(path: Path, parse: Callable[[Any], T]) -> Iterator[T]:
    for number, line in enumerate(whole_lines(path), 1):
        if not line.strip():
            continue
        try:
            yield parse(json.loads(line))
        except RecordFormatError as error:
            raise RecordFormatError(f"{path}, line {number}: {error}") from error
        except (ValueError, TypeError, RecursionError) as error:
            raise RecordFormatError(f"Line {number} of {path} is not a JSON object: {error}.") from error


def _place(entry: EpisodeEntry) -> tuple[int, int, int]:
    return (entry.decision.round if entry.decision else 0, entry.episode.group, entry.member)


def _beside(event: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name not in ("event", "time", "step", *names)}
