"""Queries about the sampler of a run: its draws by step, the hardest problems now, and its state in checkpoints."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from rstar2_env.view.index import RunIndex
from rstar2_env.view.queries.rows import common_prefixes, short_question
from rstar2_env.view.queries.run_facts import MOST_BYTES, RunFacts

_HARDEST = 50
_STATES = 3
"""Number of newest checkpoints whose sampler state is returned."""
_GROUPS = {"easy": "all_right", "middle": "mixed", "hard": "all_wrong"}
"""For each difficulty of a problem, the kind of group that shows it: all correct, mixed, or all wrong."""
_LONG = 50
"""Maximum number of returned entries of a list or mapping in a sampler state."""


def sampler_of(index: RunIndex, facts: RunFacts) -> dict[str, Any]:
    """Return the sampler's options, its draws by step, the hardest problems, and its state in checkpoints.

    Args:
        index: Index of the run.
        facts: Facts of the run.

    Returns:
        ``name`` and ``options`` of the sampler, the keys of ``_history``, ``hardest`` (the result of ``_hardest``), and
        ``states`` (results of ``_state`` for the newest checkpoints).
    """
    name, options = part_of(facts.config, "sampler")
    with index.reading() as db:
        history = _history(db)
        hardest = _hardest(db)
    states = [_state(index, event) for event in facts.valid_events if event.get("event") == "checkpoint"]
    newest = [state for state in states if state is not None][-_STATES:]
    return {"name": name, "options": options, **history, "hardest": hardest, "states": newest}


def part_of(config: Mapping[str, Any], slot: str) -> tuple[str, dict[str, Any]]:
    """Return the name and options of the part that a run uses in ``slot``, such as "sampler"; empty if unknown."""
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
    """Return ``steps`` (the training steps), lists with a value per step, and ``seen``, the number of problems played.

    The lists are ``success`` (the success rate), ``new_problems``, and ``refilled`` (the number of groups that were
    played after the first round). ``groups`` has three lists: the numbers of groups whose episodes are all wrong, mixed
    or all correct. ``counts`` has a list for each difficulty: the number of problems, among those played so far, whose
    last group shows this difficulty.
    """
    last: dict[int, str] = {}
    kinds = {"hard": 0, "middle": 0, "easy": 0}
    found: dict[str, list[Any]] = {name: [] for name in ("steps", "success", "new_problems", "refilled")}
    groups: dict[str, list[int]] = {name: [] for name in _GROUPS.values()}
    counts: dict[str, list[int]] = {name: [] for name in kinds}
    rows = db.execute(
        "SELECT step, round, problem, avg(correct), count(*) FROM episodes WHERE split = 'train' AND available"
        " GROUP BY step, round, grp ORDER BY step, round, grp"
    )
    for step, of_step in groupby(rows, itemgetter(0)):
        played = list(of_step)
        known = len(last)
        for _, _, problem, success, _ in played:
            if problem in last:
                kinds[last[problem]] -= 1
            last[problem] = _kind(success)
            kinds[last[problem]] += 1
        found["steps"].append(step)
        found["success"].append(sum(row[3] * row[4] for row in played) / sum(row[4] for row in played))
        found["new_problems"].append(len(last) - known)
        found["refilled"].append(sum(row[1] > 0 for row in played))
        for kind, name in _GROUPS.items():
            groups[name].append(sum(_kind(row[3]) == kind for row in played))
            counts[kind].append(kinds[kind])
    return {**found, "groups": groups, "counts": {"steps": found["steps"], **counts}, "seen": len(last)}


def _kind(success: float) -> str:
    return "hard" if success == 0 else "easy" if success == 1 else "middle"


def _hardest(db: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return the problems with the lowest success rates; each rate is from the last step that played the problem."""
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
    """Return the sampler's state from a checkpoint event, with long lists cut; ``None`` if no state was saved."""
    name = event.get("sampler")
    if not isinstance(name, str):
        return None
    path = (index.run / name).resolve()
    # The name comes from a file, so it must not point outside the run.
    if index.run.resolve() not in path.parents:
        return None
    state, note = None, None
    try:
        if path.stat().st_size > MOST_BYTES:
            note = "The file is too large to be shown."
        else:
            state = _shortened(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return None  # an older checkpoint that was deleted
    except (OSError, ValueError, RecursionError) as error:
        note = f"The file cannot be read: {error}."
    return {"step": event.get("step"), "file": name, "state": state, "note": note}


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
