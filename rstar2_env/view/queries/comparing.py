"""Two runs problem by problem, and the options in which they differ."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping
from typing import Any

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.evaluation.figures.statistics import paired
from rstar2_env.view.index import RunIndex
from rstar2_env.view.queries.episodes import page_of
from rstar2_env.view.queries.figures import last_step
from rstar2_env.view.queries.kept import KEPT
from rstar2_env.view.queries.rows import heads_of, key_of, short_question, version_of

_KEYS = 16
"""Episodes of a problem that a row names, at most."""
_MOST_OPTIONS = 2000
_CHANGES = {"gained": "gained", "better": "gained", "lost": "lost", "worse": "lost", "same": "same"}

Side = dict[str, Any]


def compare_runs(a: RunIndex, b: RunIndex, asked: Mapping[str, str]) -> dict[str, Any]:
    """The problems that two runs both played, with the success of each.

    Args:
        a: The first run's.
        b: The second run's.
        asked: ``split`` (eval, or train where neither has the other), ``a_step`` and ``b_step`` (of an evaluation the
            last, of training all), ``q`` (part of the id or question), ``change`` (gained, lost, same), ``sort``,
            ``offset``, ``limit``.

    Raises:
        ConfigurationError: A value is of another form.
    """
    offset, limit = page_of(asked)
    split = _split(a, b, asked.get("split", ""))
    steps = [_step(index, split, asked, name) for index, name in ((a, "a"), (b, "b"))]
    sides = [_side(index, split, step) for index, step in zip((a, b), steps, strict=True)]
    change = asked.get("change") or asked.get("only") or ""
    if change and change not in _CHANGES:
        raise ConfigurationError(f"change must be gained, lost or same, not {change[:40]!r}.")
    shared = [name for name in sides[0] if name in sides[1]]
    rows = [_row(name, sides[0][name], sides[1][name]) for name in shared]
    figures = _figures(rows, sides, KEPT, (a.file, b.file, split, *steps, len(rows)))
    picked = [row for row in rows if not change or row["change"] == _CHANGES[change]]
    if q := asked.get("q", "").strip().casefold():
        picked = [row for row in picked if q in row["problem_id"].casefold() or q in row["question"].casefold()]
    picked = _sorted(picked, asked.get("sort", ""))
    page = picked[offset : offset + limit]
    for row in page:
        for name, index, step in zip("ab", (a, b), steps, strict=True):
            row[name] = row[name] | _keys(index, split, step, row["problem_id"])
    return {"total": len(picked), "split": split, "steps": steps, "figures": figures, "rows": page}


def _split(a: RunIndex, b: RunIndex, said: str) -> str:
    if said in ("train", "eval"):
        return said
    if said:
        raise ConfigurationError(f"split must be train or eval, not {said[:40]!r}.")
    return (
        "eval"
        if any(index.query("SELECT 1 FROM episodes WHERE split = 'eval' LIMIT 1") for index in (a, b))
        else ("train")
    )


def _step(index: RunIndex, split: str, asked: Mapping[str, str], name: str) -> int | None:
    """The step that is compared; ``None`` for all of training."""
    said = asked.get(f"{name}_step") or asked.get(f"step_{name}") or ""
    if said:
        if not said.isdecimal() or len(said) > 12:
            raise ConfigurationError(f"{name}_step must be a step, not {said[:40]!r}.")
        return int(said)
    if split == "train":
        return None
    with index.reading() as db:
        return last_step(db, split)


def _side(index: RunIndex, split: str, step: int | None) -> dict[str, Side]:
    """What a run made of each problem, by the problem's name."""
    with index.reading() as db:
        question = (index.file, version_of(db), "side", split, step)
        found: dict[str, Side] = KEPT.find(question, lambda: _problems(db, split, step))
    return found


def _problems(db: sqlite3.Connection, split: str, step: int | None) -> dict[str, Side]:
    where, values = ("AND e.step = ?", (split, step)) if step is not None else ("", (split,))
    found, heads = {}, heads_of(db)
    for name, task, source, text, count, counted, success, reward, tokens, calls, errors in db.execute(
        "SELECT p.name, p.task, p.source, p.question, count(*), sum(e.available),"
        " avg(CASE WHEN e.available THEN e.correct END), avg(CASE WHEN e.available THEN e.reward END),"
        " avg(CASE WHEN e.available THEN e.tokens END), sum(CASE WHEN e.available THEN e.calls END),"
        " sum(CASE WHEN e.available THEN e.errors END)"
        " FROM episodes e JOIN problems p ON p.id = e.problem"
        f" WHERE e.split = ? {where} GROUP BY e.problem ORDER BY p.name",
        values,
    ):
        figures = {"success": success, "n": counted, "played": count, "tokens": tokens, "reward": reward}
        figures |= {"calls": calls or 0, "errors": errors or 0, "tool_error_share": errors / calls if calls else None}
        found[name] = {
            "about": {"task": task, "source": source, "question": short_question(text, task, heads)},
            "figures": figures,
        }
    return found


def _row(name: str, a: Side, b: Side) -> dict[str, Any]:
    one, other = a["figures"]["success"], b["figures"]["success"]
    difference = None if one is None or other is None else other - one
    change = None if difference is None else "same" if difference == 0 else "gained" if difference > 0 else "lost"
    return {
        "problem_id": name,
        **a["about"],
        "a": a["figures"],
        "b": b["figures"],
        "difference": difference,
        "change": change,
        "gained": change == "gained",
    }


def _figures(
    rows: list[dict[str, Any]], sides: list[dict[str, Side]], kept: Any, question: tuple[Any, ...]
) -> dict[str, Any]:
    """Means over the problems that both played, and their difference with its interval of 95 %."""
    both = [row for row in rows if row["difference"] is not None]
    one = np.array([row["a"]["success"] for row in both], dtype=np.float64)
    other = np.array([row["b"]["success"] for row in both], dtype=np.float64)
    interval, p = kept.find((*question, one.tobytes(), other.tobytes()), lambda: paired(one, other))
    changes = [row["change"] for row in both]
    return {
        "problems": len(both),
        "a": _mean(one),
        "b": _mean(other),
        "difference": _finite(interval.value),
        "low": _finite(interval.low),
        "high": _finite(interval.high),
        "p": p,
        "gained": changes.count("gained"),
        "lost": changes.count("lost"),
        "same": changes.count("same"),
        "only_a": len(sides[0].keys() - sides[1].keys()),
        "only_b": len(sides[1].keys() - sides[0].keys()),
    }


def _mean(values: Any) -> float | None:
    return float(values.mean()) if len(values) else None


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _sorted(rows: list[dict[str, Any]], sort: str) -> list[dict[str, Any]]:
    name = sort.removeprefix("-") or "problem_id"
    if name in ("a", "b"):
        values = [row[name]["success"] for row in rows]
    elif name in ("problem_id", "question", "task", "source", "difference"):
        values = [row[name] for row in rows]
    else:
        raise ConfigurationError(
            f"There is no column {name[:40]!r} to sort by; there are problem_id, question, task, source, difference, a "
            "and b."
        )
    known = [at for at, value in enumerate(values) if value is not None]
    known.sort(key=lambda at: values[at], reverse=sort.startswith("-"))
    return [rows[at] for at in known] + [row for row, value in zip(rows, values, strict=True) if value is None]


def _keys(index: RunIndex, split: str, step: int | None, problem: str) -> dict[str, Any]:
    """The keys of a run's episodes of a problem; of training the newest."""
    where, values = ("AND e.step = ?", [step]) if step is not None else ("", [])
    found = index.query(
        "SELECT e.split, e.step, e.line, f.rank FROM problems p JOIN episodes e ON e.problem = p.id"
        f" JOIN files f ON f.id = e.file WHERE p.name = ? AND e.split = ? {where}"
        f" ORDER BY e.step DESC, e.grp, e.member LIMIT {_KEYS}",
        [problem, split, *values],
    )
    keys = [key_of(*one) for one in found]
    return {"keys": keys, "key": keys[0] if keys else None}


def differing_options(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    """The options in which two runs differ, by their dotted names; null stands for one that is missing."""
    one, other = _flat(a), _flat(b)
    names = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
    rows = [{"path": name, "a": one.get(name), "b": other.get(name)} for name in names[:_MOST_OPTIONS]]
    return {"options": rows}


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, Mapping) and (value or not path):
        found: dict[str, Any] = {}
        for name, one in value.items():
            found |= _flat(one, f"{path}.{name}" if path else str(name))
        return found
    return {path: value if isinstance(value, (str, int, float, bool, type(None))) else json.dumps(value, default=str)}
