"""What the sampler of a run made of it: which problems are hard now, and how that moved from step to step."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from rstar2_env.view.index import RunIndex
from rstar2_env.view.queries.rows import heads_of, short_question
from rstar2_env.view.queries.run_facts import MOST_BYTES, RunFacts

_HARDEST = 50
_STATES = 3
"""Checkpoints whose state is told: the newest."""
_LONG = 50
"""Entries of a list or mapping of a state that are told."""


def sampler_of(index: RunIndex, facts: RunFacts) -> dict[str, Any]:
    """The sampler: its options, what each step drew, the problems that are hard now, its state in checkpoints.

    Args:
        index: The run's.
        facts: The run's small files.
    """
    name, options = part_of(facts.config, "sampler")
    with index.reading() as db:
        moved = _moved(db)
        hardest = _hardest(db)
    states = [_state(index, event) for event in facts.lasting if event.get("event") == "checkpoint"]
    told = [one for one in states if one is not None][-_STATES:]
    return {"name": name, "options": options, **moved, "hardest": hardest, "states": told}


def part_of(config: Mapping[str, Any], slot: str) -> tuple[str, dict[str, Any]]:
    """Name and options of the part in a slot, of a run's options; empty where nobody says."""
    parts = config.get("parts")
    part = parts.get(slot) if isinstance(parts, Mapping) else None
    if isinstance(part, str):
        return part, {}
    if isinstance(part, Mapping):
        return str(part.get("name", "")), {key: value for key, value in part.items() if key != "name"}
    if isinstance(part, list) and part and isinstance(part[0], str):
        options = part[1] if len(part) > 1 and isinstance(part[1], Mapping) else {}
        return part[0], dict(options)
    return "", {}


def _moved(db: sqlite3.Connection) -> dict[str, Any]:
    """By step: groups that were all right, mixed, all wrong; new problems; and how hard those seen so far are."""
    last: dict[int, float] = {}
    kinds = {"hard": 0, "middle": 0, "easy": 0}
    steps: list[int] = []
    groups: dict[str, list[int]] = {"all_right": [], "mixed": [], "all_wrong": []}
    counts: dict[str, list[int]] = {name: [] for name in kinds}
    series: dict[str, list[Any]] = {"success": [], "new_problems": [], "refilled": []}
    right, played = 0.0, 0
    for step, round_, problem, success, count in db.execute(
        "SELECT step, round, problem, avg(correct), count(*) FROM episodes WHERE split = 'train' AND available"
        " GROUP BY step, round, grp ORDER BY step, round, grp"
    ):
        if not steps or steps[-1] != step:
            if steps:
                _close(series, counts, kinds, right, played)
            steps.append(step)
            right, played = 0.0, 0
            for one in groups.values():
                one.append(0)
            series["new_problems"].append(0)
            series["refilled"].append(0)
        groups["all_right" if success == 1 else "all_wrong" if success == 0 else "mixed"][-1] += 1
        right, played = right + success * count, played + count
        series["new_problems"][-1] += problem not in last
        series["refilled"][-1] += round_ > 0
        if problem in last:
            kinds[_kind(last[problem])] -= 1
        last[problem] = success
        kinds[_kind(success)] += 1
    if steps:
        _close(series, counts, kinds, right, played)
    return {"steps": steps, "groups": groups, **series, "counts": {"steps": steps, **counts}, "seen": len(last)}


def _close(
    series: dict[str, list[Any]], counts: dict[str, list[int]], kinds: Mapping[str, int], right: float, played: int
) -> None:
    series["success"].append(right / played if played else None)
    for name, count in kinds.items():
        counts[name].append(count)


def _kind(success: float) -> str:
    return "hard" if success == 0 else "easy" if success == 1 else "middle"


def _hardest(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """The problems that went worst when they were last played."""
    found = db.execute(
        "WITH last AS (SELECT problem, max(step) AS step, count(*) AS seen FROM episodes"
        " WHERE split = 'train' AND available GROUP BY problem)"
        " SELECT p.name, p.task, p.question, avg(e.correct) AS success, last.seen, last.step"
        " FROM last JOIN episodes e ON e.problem = last.problem AND e.split = 'train' AND e.step = last.step"
        " JOIN problems p ON p.id = e.problem WHERE e.available"
        f" GROUP BY e.problem ORDER BY success, last.seen DESC, p.name LIMIT {_HARDEST}"
    )
    names = ("problem_id", "task", "question", "success", "seen", "last_step")
    heads = heads_of(db)
    rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    return [{**row, "question": short_question(row["question"], row["task"], heads)} for row in rows]


def _state(index: RunIndex, event: Mapping[str, Any]) -> dict[str, Any] | None:
    """The sampler's state in a checkpoint that is still there, with long lists cut."""
    name = event.get("sampler")
    if not isinstance(name, str):
        return None
    path = (index.run / name).resolve()
    # The name comes from a file: it must not lead out of the run.
    if index.run.resolve() not in path.parents:
        return None
    try:
        if path.stat().st_size > MOST_BYTES:
            return {"step": event.get("step"), "file": name, "state": None, "note": "It is too large to be shown."}
        state = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None  # an older checkpoint, which was deleted
    except (OSError, ValueError, RecursionError) as error:
        return {"step": event.get("step"), "file": name, "state": None, "note": f"It cannot be read: {error}."}
    return {"step": event.get("step"), "file": name, "state": _shortened(state), "note": None}


def _shortened(value: Any, depth: int = 0) -> Any:
    if depth > 12:
        return "…"
    if isinstance(value, dict):
        found = {str(name): _shortened(one, depth + 1) for name, one in list(value.items())[:_LONG]}
        return found if len(value) <= _LONG else {**found, "…": f"{len(value) - _LONG} more"}
    if isinstance(value, list):
        shown = [_shortened(one, depth + 1) for one in value[:_LONG]]
        return shown if len(value) <= _LONG else [*shown, f"… {len(value) - _LONG} more"]
    return value
