"""``RunFacts``: reads the small files of a run (options, state, metrics, events); rereads a file only if it changed."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import RecordFormatError
from rstar2_env.core.run_folder.layout import (
    CARD_FILE,
    CONFIG_FILE,
    EPISODES,
    EVENTS_FILE,
    METRICS_FILE,
    RUN_FILE,
    SUMMARY_FILE,
    TOKENS,
    VERDICT_FILE,
)
from rstar2_env.view.index.episode_columns import as_float, as_int, parse_line
from rstar2_env.view.index.line_batches import read_batches
from rstar2_env.view.index.line_files import file_state
from rstar2_env.view.index.records import GrowingRecords

STILL_S = 600.0
"""Seconds without a write after which an unfinished run is shown as stopped."""
MOST_BYTES = 16 << 20
"""Maximum size of a small file (options, summary, model card) in bytes; larger files are skipped."""
_ENDS = frozenset({"finished", "interrupted", "failed"})
"""Names of the events that end a run; a run's state after such an event has the same name."""
_PLACES = frozenset({"seed", "output_dir", "name", "run_name", "port", "resume", "logging_dir"})
"""Names of options that ``group_of`` ignores: plots draw runs that differ only in these options as one band."""


class RunFacts:
    """Reads the small files of a run, and caches their content until they change.

    Args:
        path: Folder of the run, or the single file of an evaluation.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, path.is_file()
        self._events = GrowingRecords(path / EVENTS_FILE, path)
        self._metrics = GrowingRecords(path / METRICS_FILE, path)
        self._merged: tuple[tuple[int, int], dict[int, dict[str, float | None]]] | None = None
        self._objects: dict[str, tuple[tuple[int, int, int], Any, str]] = {}
        self._lock = threading.Lock()

    @property
    def events(self) -> list[dict[str, Any]]:
        """All events of the run, in order."""
        return self._events.read()

    @property
    def valid_events(self) -> list[dict[str, Any]]:
        """The events of the run, without events of steps that a resume dropped (docs/run-folder.md, rule 4)."""
        valid: list[dict[str, Any]] = []
        for event in self.events:
            step = _step(event)
            if event.get("event") == "resumed":
                valid = [past for past in valid if str(past.get("event")) not in _REVOCABLE or _step(past) <= step]
            valid.append(event)
        return valid

    @property
    def config(self) -> dict[str, Any]:
        """The options of the run; empty if they cannot be read."""
        if self._file:
            options = (self._read_cached("", _first_record, most=None) or {}).get("run")
            return options if isinstance(options, dict) else {}
        identity = self.object(RUN_FILE) or {}
        name = str(identity.get("config") or CONFIG_FILE)
        # The name comes from a file, so it must not point outside the folder.
        return (self.object(name) if Path(name).name == name else None) or {}

    @property
    def metrics(self) -> dict[int, dict[str, float | None]]:
        """Metrics by step; lines of one step are merged, later values win. An evaluation has only step 0."""
        lines = self._metrics.read()
        events = self.valid_events
        state = (self._metrics.changes, self._events.changes)
        if self._merged is not None and self._merged[0] == state:
            return self._merged[1]
        steps: dict[int, dict[str, float | None]] = {}
        for line in lines:
            if isinstance(line.get("step"), (int, float)):
                steps.setdefault(_step(line), {}).update(_figures(line))
        for event in events:
            if event.get("event") == "evaluation" and isinstance(event.get("figures"), dict):
                figures = steps.setdefault(_step(event), {})
                for name, value in _figures(event["figures"]).items():
                    figures.setdefault(f"eval/{name.removeprefix('eval/')}", value)
        merged = {step: steps[step] for step in sorted(steps)}
        self._merged = (state, merged)
        return merged

    def notes(self) -> list[str]:
        """Return notes on unreadable content of the metrics, the events, and the other files that were read so far."""
        self._events.read()
        self._metrics.read()
        with self._lock:
            found = [note for _, _, note in self._objects.values() if note]
        return found + self._events.notes + self._metrics.notes

    def object(self, name: str) -> dict[str, Any] | None:
        """Return the JSON object in a file; ``None`` if it is missing or cannot be read."""
        value = self._read_cached(name, lambda path: json.loads(_text_of(path)))
        return value if isinstance(value, dict) else None

    @property
    def summary(self) -> dict[str, Any] | None:
        """The metrics of a standalone evaluation; ``None`` for other runs."""
        return self.object(SUMMARY_FILE)

    @property
    def verdict(self) -> list[str]:
        """The sentences of the summary that a finished training run has written; empty if there is none."""
        sentences = (self.object(VERDICT_FILE) or {}).get("sentences")
        return [str(one) for one in sentences] if isinstance(sentences, list) else []

    @property
    def card(self) -> str | None:
        """The model card of the run; ``None`` if there is none."""
        found = self._read_cached(CARD_FILE, _text_of)
        return found if isinstance(found, str) else None

    def _read_cached(self, name: str, read: Callable[[Path], Any], *, most: int | None = MOST_BYTES) -> Any:
        """Read a file of the run, or return its cached content if it is unchanged.

        Args:
            name: Name of the file; empty for the file of an evaluation, ``path`` itself.
            read: Function that reads the file.
            most: Maximum size in bytes; ``None`` for no limit.
        """
        path = self._path / name
        with self._lock:
            try:
                state = file_state(path, self._path)
                known = self._objects.get(name)
                if known is not None and known[0] == state:
                    return known[1]
                value, note = None, ""
                if most is not None and state[1] > most:
                    note = f"The file {path.name} is larger than {most >> 20} MiB and was skipped."
                else:
                    value = read(path)
            except (FileNotFoundError, NotADirectoryError):
                self._objects.pop(name, None)
                return None
            except (OSError, ValueError, RecursionError) as error:
                state, value, note = (0, 0, 0), None, f"The file {path.name} cannot be read: {error}."
            self._objects[name] = (state, value, note)
            return value

    def row(self) -> dict[str, Any]:
        """Return the run's row for the list of runs, without the values that come from the index."""
        events, config, valid = self.events, self.config, self.valid_events
        steps = [_step(record) for record in (*valid, *self._metrics.read())]
        last = events[-1] if events else {}
        state, error = str(last.get("event")), str(last.get("error") or "")[:2000] or None
        if state in _ENDS:
            written = _mtime(self._path / EVENTS_FILE)
        else:
            written, error = self._last_written(), None
            idle = "finished" if self._file else "stopped"
            state = idle if time.time() - written > STILL_S else "running"
        started = events[0].get("time") if events else None
        planned = _run_option(config, "steps")
        return {
            "path": str(self._path),
            "recipe": str(config.get("trainer") or ""),
            "group": group_of(config),
            "seed": _run_option(config, "seed"),
            "figures": self._last_figures(),
            "started": started if isinstance(started, str) else None,
            "updated": datetime.fromtimestamp(written, UTC).isoformat(timespec="seconds") if written else None,
            "state": state,
            "error": error,
            "steps": max(steps, default=0),
            "planned_steps": planned if planned and planned > 0 else None,
            "evaluations": len({_step(event) for event in valid if event.get("event") == "evaluation"}),
            "checkpoints": len({_step(event) for event in valid if event.get("event") == "checkpoint"}),
            "has_tokens": not self._file and (self._path / TOKENS).is_dir(),
        }

    def _last_figures(self) -> dict[str, float | None] | None:
        """Return the last pass rate, reward and share of tool errors: held-out values if any, else rollout values."""
        metrics = self.metrics
        found: dict[str, float | None] = {}
        for name in ("pass_rate", "reward", "tool_error_share"):
            for prefix in ("eval", "rollout"):
                for figures in reversed(metrics.values()):
                    value = figures.get(f"{prefix}/{name}")
                    if value is not None:
                        found.setdefault(name, value)
                        break
            found.setdefault(name, None)
        return found if any(value is not None for value in found.values()) else None

    def _last_written(self) -> float:
        """Return the last time when a file of the run was written, in seconds since 1970."""
        try:
            episodes = [Path(entry.path) for entry in os.scandir(self._path / EPISODES)]
        except OSError:
            episodes = []
        return max(_mtime(path) for path in (*self._small_files(), *episodes))

    def signature(self) -> tuple[Any, ...]:
        """Return a value that changes whenever one of the run's small files changes."""
        found = []
        for path in self._small_files():
            try:
                found.append(file_state(path, self._path))
            except OSError:
                found.append((0, 0, 0))
        return tuple(found)

    def _small_files(self) -> list[Path]:
        names = (RUN_FILE, EVENTS_FILE, METRICS_FILE, SUMMARY_FILE, CARD_FILE)
        return [self._path] if self._file else [self._path / name for name in names]


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _text_of(path: Path) -> str:
    return path.read_text("utf-8", "replace")


def _first_record(path: Path) -> dict[str, Any]:
    """Return the first record of a file; empty if it cannot be parsed (the index has a note about it)."""
    line = next((line for piece in read_batches(path, 0) for _, line in piece.lines if line), None)
    try:
        return parse_line(line) if line else {}
    except RecordFormatError:
        return {}


_REVOCABLE = frozenset({"checkpoint", "evaluation", "saved"})


def group_of(config: Mapping[str, Any]) -> str:
    """Return a digest of a run's options without ``_PLACES``; plots draw runs with equal digests as one band."""
    try:
        text = json.dumps(_without_places(config), sort_keys=True, default=str)
    except RecursionError:
        text = ""  # nested too deeply to be real options
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def _without_places(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_places(child) for name, child in value.items() if name not in _PLACES}
    return value


def _run_option(config: Mapping[str, Any], name: str) -> int | None:
    """Return a whole-number option of a run, from the section ``run`` if the options have this section."""
    run = config.get("run")
    value = run.get(name) if isinstance(run, Mapping) else config.get(name)
    return value if isinstance(value, int) else None


def _step(record: Mapping[str, Any]) -> int:
    return as_int(record.get("step"))


def _figures(line: Mapping[str, Any]) -> dict[str, float | None]:
    return {
        name: as_float(value)
        for name, value in line.items()
        if name != "step" and (value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)))
    }
