"""A file of episodes in a terminal, whoever wrote it: a summary, or one episode of it.

It may be a file of a run's folder, of an evaluation, of the wrapper that records episodes, or one JSON object.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from rstar2_env.core.errors import ConfigurationError, RecordFormatError
from rstar2_env.view.index.facts import COLUMNS, check_episode, facts_of, parsed
from rstar2_env.view.index.growing import MOST_LINE, grown
from rstar2_env.view.queries.rows import added, counts_in
from rstar2_env.view.terminal.episodes import conversation
from rstar2_env.view.terminal.harmless import one_line, shown
from rstar2_env.view.terminal.overview import number

_NOTES = 10
_FIELD = {"reward": "reward", "turns": "turns", "tokens": "policy_tokens"}
"""The field of a record behind each mean of a summary."""


def show_file(file: Path, episode: int | None = None) -> RenderableType:
    """An episode of a file; of a file with several, and none named, a summary of all.

    Args:
        file: The file.
        episode: Which one, from 0; those that cannot be read count too.

    Raises:
        ConfigurationError: It cannot be read, holds no episode, or not that one.
    """
    notes: list[str] = []
    if episode is not None:
        for at, record in _records(file, notes):
            if at == episode:
                try:
                    check_episode(record)
                except RecordFormatError as error:
                    raise ConfigurationError(
                        f"{file}, record {at}: {error}. Expected one as a run, an evaluation or a recording writes it."
                    ) from None
                return conversation(record, heading=f"episode {at} of {file}")
        raise ConfigurationError(f"{file} has no episode {episode}{_said(notes)}.")
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
            f"{file} holds no episode{_said(notes)}. Expected JSON lines (also .gz) of episodes, each with 'messages'."
        )
    if first is not None:
        return conversation(first, heading=f"the one episode of {file}")
    return Group(found.table(file), *(shown(f"Note: {note}", "yellow") for note in notes))


class _Summary:
    """Adds up what a file holds, without keeping it."""

    def __init__(self) -> None:
        self.count = 0
        self._told: set[str] = set()
        self._counted = self._right = self._calls = self._errors = 0
        self._sums = dict.fromkeys(_FIELD, 0.0)
        self._problems: set[str] = set()
        self._ends: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()
        self._injected: Counter[str] = Counter()
        self._kept: int | None = None

    def add(self, record: dict[str, Any], line: int) -> None:
        facts = facts_of(record, "eval", 0, line)
        row = dict(zip(COLUMNS, facts.values, strict=True))
        self.count += 1
        self._told.update(record)
        self._problems.add(facts.problem[0])
        self._ends[row["end"] or "unknown"] += 1
        self._statuses.update(counts_in(row["statuses"]))
        self._injected.update(counts_in(row["injected"]))
        if row["kept"] is not None:
            self._kept = (self._kept or 0) + row["kept"]
        if row["available"]:
            self._counted += 1
            self._right += row["correct"]
            self._calls += row["calls"]
            self._errors += row["errors"]
            for name in self._sums:
                self._sums[name] += row[name] or 0.0

    def table(self, file: Path) -> RenderableType:
        table = Table(title=shown(one_line(file)), show_header=False, title_justify="left")
        # What no record says is left out: a trace for a cold start has a reward, and no turns.
        rows: dict[str, Any] = {
            "episodes": self.count,
            "kept": self._kept,
            "problems": len(self._problems),
            "right": self._right / self._counted if self._counted and "correct" in self._told else None,
            **{
                name: total / self._counted
                for name, total in self._sums.items()
                if self._counted and _FIELD[name] in self._told
            },
            "calls": self._calls,
            "share of failed calls": self._errors / self._calls if self._calls else None,
        }
        for name, value in rows.items():
            if value is not None:
                table.add_row(name, number(value))
        for name, counts in (("ends", self._ends), ("statuses", self._statuses), ("injected", self._injected)):
            if counts:
                told = ", ".join(f"{key} {count:,}" for key, count in added([(counts, 1)]).items())
                table.add_row(name, shown(one_line(told, 1000)))
        return table


def _records(file: Path, notes: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each record of a file that can be read, with its number; what cannot be read is noted."""
    if file.is_dir():
        raise ConfigurationError(f"{file} is a folder: `rstar2 view --text {file}` shows a run.")
    try:
        if file.suffix == ".json":
            record = json.loads(file.read_text("utf-8", "replace"))
            for at, one in enumerate(record if isinstance(record, list) else [record]):
                if isinstance(one, dict):
                    yield at, one
                else:
                    _note(notes, f"record {at}: it is not a JSON object; it is left out")
            return
        at = 0
        for piece in grown(file, 0):
            if piece.broken:
                _note(notes, f"{piece.broken}; what comes before it was read")
            for _, line in piece.lines:
                try:
                    if line is None:
                        raise RecordFormatError(f"it is longer than {MOST_LINE >> 20} MiB")
                    if line.strip():
                        yield at, parsed(line)
                except RecordFormatError as error:
                    _note(notes, f"line {at + 1}: {error}; it is left out")
                at += 1
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{file} is not JSON: {error}.") from error


def _note(notes: list[str], text: str) -> None:
    if len(notes) < _NOTES:
        notes.append(text)


def _said(notes: list[str]) -> str:
    return f" ({'; '.join(notes[:3])})" if notes else ""
