"""The sampler of a run: its draws by step, the problems that are currently hard, and its state in checkpoints."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from rstar2_env.view.index import RunIndex
from rstar2_env.view.queries.rows import common_prefixes, short_question
from rstar2_env.view.queries.run_facts import MOST_BYTES, RunFacts

_HARDEST = 50
_STATES = 3
"""Number of checkpoints whose state is returned: the newest ones."""
_LONG = 50
"""Maximum number of entries returned of a list or mapping in a state."""


def sampler_of(index: RunIndex, facts: RunFacts) -> dict[str, Any]:
    """Return the options of the sampler, its draws by step, the hardest problems and its state in checkpoints.

    Args:
        index: Index of the run.
        facts: Facts of the run.
    """
    name, options = part_of(facts.config, "sampler")
    with index.reading() as db:
        history = _history(db)
        hardest = _hardest(db)
    states = [_state(index, event) for event in facts.valid_events if event.get("event") == "checkpoint"]
    newest = [state for state in states if state is not None][-_STATES:]
    return {"name": name, "options": options, **history, "hardest": hardest, "states": newest}


def part_of(config: Mapping[str, Any], slot: str) -> tuple[str, dict[str, Any]]:
    """Return name and options of the part in a slot from the options of a run; empty if it is not specified."""
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


def _history(db: sqlite3.Connection) -> dict[str, Any]:
    """Return by step: all-correct, mixed and all-wrong groups, new problems, and the difficulty of seen problems."""
    last: dict[int, float] = {}
    kinds = {"hard": 0, "middle": 0, "easy": 0}
    steps: list[int] = []
    groups: dict[str, list[int]] = {"all_right": [], "mixed": [], "all_wrong": []}
    counts: dict[str, list[int]] = {name: [] for name in kinds}
    series: dict[str, list[Any]] = {"success": [], "new_problems": [], "refilled": []}
    correct, played = 0.0, 0
    for step, round_, problem, success, count in db.execute(
        "SELECT step, round, problem, avg(correct), count(*) FROM episodes WHERE split = 'train' AND available"
        " GROUP BY step, round, grp ORDER BY step, round, grp"
    ):
        if not steps or steps[-1] != step:
            if steps:
                _finish_step(series, counts, kinds, correct, played)
            steps.append(step)
            correct, played = 0.0, 0
            for by_step in groups.values():
                by_step.append(0)
            series["new_problems"].append(0)
            series["refilled"].append(0)
        groups["all_right" if success == 1 else "all_wrong" if success == 0 else "mixed"][-1] += 1
        correct, played = correct + success * count, played + count
        series["new_problems"][-1] += problem not in last
        series["refilled"][-1] += round_ > 0
        if problem in last:
            kinds[_kind(last[problem])] -= 1
        last[problem] = success
        kinds[_kind(success)] += 1
    if steps:
        _finish_step(series, counts, kinds, correct, played)
    return {"steps": steps, "groups": groups, **series, "counts": {"steps": steps, **counts}, "seen": len(last)}


def _finish_step(
    series: dict[str, list[Any]], counts: dict[str, list[int]], kinds: Mapping[str, int], correct: float, played: int
) -> None:
    series["success"].append(correct / played if played else None)
    for name, count in kinds.items():
        counts[name].append(count)


def _kind(success: float) -> str:
    return "hard" if success == 0 else "easy" if success == 1 else "middle"


def _hardest(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return the problems with the lowest success rates at their last step."""
    found = db.execute(
        "WITH last AS (SELECT problem, max(step) AS step, count(*) AS seen FROM episodes"
        " WHERE split = 'train' AND available GROUP BY problem)"
        " SELECT p.name, p.task, p.question, avg(e.correct) AS success, last.seen, last.step"
        " FROM last JOIN episodes e ON e.problem = last.problem AND e.split = 'train' AND e.step = last.step"
        " JOIN problems p ON p.id = e.problem WHERE e.available"
        f" GROUP BY e.problem ORDER BY success, last.seen DESC, p.name LIMIT {_HARDEST}"
    )
    names = ("problem_id", "task", "question", "success", "seen", "last_step")
    heads = common_prefixes(db)
    rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    return [{**row, "question": short_question(row["question"], row["task"], heads)} for row in rows]


def _state(index: RunIndex, event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the state of the sampler in an existing checkpoint, with long lists cut."""
    name = event.get("sampler")
    if not isinstance(name, str):
        return None
    path = (index.run / name).resolve()
    # The name comes from a file, so it must not point outside the run.
    if index.run.resolve() not in path.parents:
        return None
    try:
        if path.stat().st_size > MOST_BYTES:
            return {
                "step": event.get("step"),
                "file": name,
                "state": None,
                "note": "The file is too large to be shown.",
            }
        state = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None  # an older checkpoint that was deleted
    except (OSError, ValueError, RecursionError) as error:
        return {"step": event.get("step"), "file": name, "state": None, "note": f"The file cannot be read: {error}."}
    return {"step": event.get("step"), "file": name, "state": _shortened(state), "note": None}


def _shortened(value: Any, depth: int = 0) -> Any:
    if depth > 12:
        return "…"
    if isinstance(value, dict):
        found = {str(name): _shortened(child, depth + 1) for name, child in list(value.items())[:_LONG]}
        return found if len(value) <= _LONG else {**found, "…": f"{len(value) - _LONG} more"}
    if isinstance(value, list):
        shown = [_shortened(child, depth + 1) for child in value[:_LONG]]
        return shown if len(value) <= _LONG else [*shown, f"… {len(value) - _LONG} more"]
    return value
