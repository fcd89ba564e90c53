"""Shows a file of episodes in a terminal: a summary of the file, or a single episode.

The file may be from a run folder, an evaluation or the recording wrapper, or any JSON file of episodes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from rstar2_env.core.errors import ConfigurationError, RecordFormatError
from rstar2_env.view.index.episode_columns import check_episode, facts_of, parse_line, problem_of
from rstar2_env.view.index.line_batches import MOST_LINE, read_batches
from rstar2_env.view.queries.rows import parse_counts, sum_counts
from rstar2_env.view.terminal.episodes import conversation
from rstar2_env.view.terminal.overview import figure
from rstar2_env.view.terminal.sanitize import one_line, safe_text
from rstar2_env.view.words import words

_NOTES = 10
_FIELD = {"reward": "reward", "tokens": "policy_tokens", "turns": "turns"}
"""For each mean in the summary, the averaged field of the episodes' records."""


def read_file(file: Path, episode: int | None = None) -> dict[str, Any]:
    """Return one episode of a file, or a summary if the file has several and none was selected.

    Args:
        file: File of episodes.
        episode: Number of the episode, from 0; unreadable records are counted too.

    Returns:
        ``heading`` and ``episode``, or ``file``, ``summary`` and ``notes``.

    Raises:
        ConfigurationError: The file cannot be read, contains no episode, or does not contain the selected episode.
    """
    notes: list[str] = []
    if episode is not None:
        for at, record in _records(file, notes):
            if at == episode:
                try:
                    check_episode(record)
                except RecordFormatError as error:
                    raise ConfigurationError(
                        f"Record {at} of {file} cannot be shown: {error}. Expected episodes of a run, "
                        "an evaluation or a recording."
                    ) from None
                return {"heading": f"episode {at} of {file}", "episode": record}
        raise ConfigurationError(f"{file} does not contain episode {episode}{_joined(notes)}.")
    found, first = _Summary(), None
    for at, record in _records(file, notes):
        try:
            found.add(record, at)
        except RecordFormatError as error:
            _note(notes, f"line {at + 1}: {error}")
            continue
        first = record if found.count == 1 else None
    if not found.count:
        raise ConfigurationError(
            f"{file} does not contain episodes{_joined(notes)}. Expected JSON lines (.jsonl or .jsonl.gz), each with "
            "'messages'."
        )
    if first is not None:
        return {"heading": f"the only episode of {file}", "episode": first}
    return {"file": str(file), "summary": found.figures(), "notes": notes}


def file_renderable(content: Mapping[str, Any]) -> RenderableType:
    """Return the renderable that shows the result of ``read_file``."""
    if "episode" in content:
        return conversation(content["episode"], heading=content["heading"])
    table = Table(title=safe_text(one_line(content["file"])), show_header=False, title_justify="left")
    labels = words()["figures"]
    for name, value in content["summary"].items():
        if isinstance(value, Mapping):
            told = one_line(", ".join(f"{key} {count:,}" for key, count in value.items()), 1000)
        else:
            told = figure(name, value)
        table.add_row(safe_text(labels.get(name, name)), safe_text(told))
    return Group(table, *(safe_text(f"Note: {note}", "yellow") for note in content["notes"]))


class _Summary:
    """Accumulates the metrics and counts of a file's episodes, without storing the records."""

    def __init__(self) -> None:
        self.count = 0
        self._fields: set[str] = set()
        self._counted = self._correct = self._calls = self._errors = 0
        self._sums = dict.fromkeys(_FIELD, 0.0)
        self._problems: set[str] = set()
        self._ends: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()
        self._injected: Counter[str] = Counter()
        self._kept: int | None = None

    def add(self, record: dict[str, Any], line: int) -> None:
        facts = facts_of(record, "eval", 0, line)
        self.count += 1
        self._fields.update(record)
        self._problems.add(problem_of(record)[0])
        self._ends[facts.end or "unknown"] += 1
        self._statuses.update(parse_counts(facts.statuses))
        self._injected.update(parse_counts(facts.injected))
        if facts.kept is not None:
            self._kept = (self._kept or 0) + facts.kept
        if facts.available:
            self._counted += 1
            self._correct += facts.correct
            self._calls += facts.calls
            self._errors += facts.errors
            for name in self._sums:
                self._sums[name] += getattr(facts, name) or 0.0

    def figures(self) -> dict[str, Any]:
        """Return the metrics and counts by name; a metric is left out if no record contains its field."""
        # Cold-start traces have a reward but no turns.
        means = {
            name: total / self._counted
            for name, total in self._sums.items()
            if self._counted and _FIELD[name] in self._fields
        }
        correct = self._correct / self._counted if self._counted and "correct" in self._fields else None
        rows: dict[str, Any] = {
            "success": correct,
            **means,
            "tool_error_share": self._errors / self._calls if self._calls else None,
            "calls": self._calls,
            "episodes": self.count,
            "kept": self._kept,
            "problems": len(self._problems),
        }
        for name, counts in (("ends", self._ends), ("statuses", self._statuses), ("injected", self._injected)):
            rows[name] = sum_counts([(counts, 1)]) or None
        return {name: value for name, value in rows.items() if value is not None}


def _records(file: Path, notes: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the readable records of a file with their numbers; add a note for each unreadable one."""
    if file.is_dir():
        raise ConfigurationError(f"{file} is a folder; to show a run, use `rstar2 view --text {file}`.")
    try:
        if file.suffix == ".json":
            record = json.loads(file.read_text("utf-8", "replace"))
            for at, item in enumerate(record if isinstance(record, list) else [record]):
                if isinstance(item, dict):
                    yield at, item
                else:
                    _note(notes, f"record {at} was skipped: it is not a JSON object")
            return
        at = 0
        for piece in read_batches(file, 0):
            if piece.broken:
                _note(notes, f"{piece.broken}; the earlier content of the file was read")
            for _, line in piece.lines:
                try:
                    if line is None:
                        raise RecordFormatError(f"the line is longer than {MOST_LINE >> 20} MiB")
                    if line.strip():
                        yield at, parse_line(line)
                except RecordFormatError as error:
                    _note(notes, f"line {at + 1} was skipped: {error}")
                at += 1
    except OSError as error:
        raise ConfigurationError(f"The file {file} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"The file {file} is not valid JSON: {error}.") from error


def _note(notes: list[str], text: str) -> None:
    if len(notes) < _NOTES:
        notes.append(text)


def _joined(notes: list[str]) -> str:
    return f" ({'; '.join(notes[:3])})" if notes else ""
