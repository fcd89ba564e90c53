"""The events of a run: converts their details to text, and selects the events to mark on curves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rstar2_env.view.index.episode_columns import as_int

_COMMON = frozenset({"event", "time", "step", "versions", "files"})
"""Keys that the details of an event omit.

``event``, ``time`` and ``step`` have their own columns; the model card shows the package versions.
"""
_EVALUATION = ("pass_rate", "reward", "tool_error_share", "broken_format", "turns", "tokens", "episodes")
"""Metrics that the details of an evaluation event show, in order."""
_LONGEST = 2000
_MARKED = ("evaluation", "checkpoint", "note", "resumed")


def event_details(event: Mapping[str, Any]) -> str:
    """Return the details of an event as text, such as ``figures: pass_rate 0.941, episodes 1,024``."""
    parts = []
    for name, value in event.items():
        if name in _COMMON:
            continue
        if name == "figures" and event.get("event") == "evaluation" and isinstance(value, dict):
            value = {figure: value[figure] for figure in _EVALUATION if figure in value} or value
        parts.append(f"{name}: {_words(value)}")
    text = "; ".join(parts)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def marks_of(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the events to mark on curves: evaluations, checkpoints, notes (such as actions of hooks) and resumptions.

    Args:
        events: Events of the run, without events of steps that a resume dropped.

    Returns:
        For each step with such an event, in ascending order: ``step``; and ``events``, the kinds of these events, each
        once.
    """
    marks: dict[int, list[str]] = {}
    for event in events:
        kind, step = event.get("event"), as_int(event.get("step"))
        if kind in _MARKED and kind not in marks.setdefault(step, []):
            marks[step].append(str(kind))
    return [{"step": step, "events": marks[step]} for step in sorted(marks) if marks[step]]


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(inner)}" for name, inner in value.items())
    return _plain(value)


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.3g}"
