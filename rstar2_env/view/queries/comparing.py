"""Compares two runs problem by problem, and compares their options."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder.layout import episode_key
from rstar2_env.evaluation.figures.statistics import paired
from rstar2_env.view.index import RunIndex
from rstar2_env.view.index.episode_columns import as_float
from rstar2_env.view.index.schema import version_of
from rstar2_env.view.queries.episodes import page_of
from rstar2_env.view.queries.figures import cached_figures, count_sql, figure_sql, last_step
from rstar2_env.view.queries.filters import split_of
from rstar2_env.view.queries.result_cache import CACHE
from rstar2_env.view.queries.rows import common_prefixes, short_question

_KEYS = 16
"""Maximum number of episodes that are listed for a problem."""
_MOST_OPTIONS = 2000
_CHANGES = {"gained": "gained", "better": "gained", "lost": "lost", "worse": "lost", "same": "same"}

Side = dict[str, Any]


def compare_runs(a: RunIndex, b: RunIndex, params: Mapping[str, str], *, of_training: bool = False) -> dict[str, Any]:
    """Return the problems that occur in both runs, with the success rate (0 to 1) in each run.

    Args:
        a: Index of the first run.
        b: Index of the second run.
        params: ``split`` [default: eval if a run has held-out episodes, else train], ``a_step`` and ``b_step``
            [default: the last step for eval, all steps for train], ``q`` (substring of the id or question), ``change``
            (gained, lost, same), ``sort``, ``offset``, ``limit``.
        of_training: Whether both are training runs. If so, the default step for eval is the last step after which
            both runs were evaluated, unless this is step 0.

    Returns:
        ``total`` (number of matching problems), ``split``, ``steps`` (the compared step of each run), ``figures``
        (means over all shared problems) and ``rows`` (the requested page).

    Raises:
        ConfigurationError: A value is invalid.
    """
    offset, limit = page_of(params)
    evaluated = any(index.query("SELECT 1 FROM episodes WHERE split = 'eval' LIMIT 1") for index in (a, b))
    split = split_of(params, "eval" if evaluated else "train")
    last = _last_of_both(a, b) if of_training and split == "eval" else None
    steps = [_step(index, split, params, name, last) for index, name in ((a, "a"), (b, "b"))]
    sides = [_side(index, split, step) for index, step in zip((a, b), steps, strict=True)]
    change = params.get("change") or params.get("only") or ""
    if change and change not in _CHANGES:
        raise ConfigurationError(f"`change` must be gained, lost or same, not {change[:40]!r}.")
    shared = [name for name in sides[0] if name in sides[1]]
    rows = [_row(name, sides[0][name], sides[1][name]) for name in shared]
    figures = _figures(rows, sides, (a.file, b.file, split, *steps, len(rows)))
    picked = [row for row in rows if not change or row["change"] == _CHANGES[change]]
    if q := params.get("q", "").strip().casefold():
        picked = [row for row in picked if q in row["problem_id"].casefold() or q in row["question"].casefold()]
    picked = _sorted(picked, params.get("sort", ""))
    page = picked[offset : offset + limit]
    for row in page:
        for name, index, step in zip("ab", (a, b), steps, strict=True):
            row[name] = row[name] | _keys(index, split, step, row["problem_id"])
    return {"total": len(picked), "split": split, "steps": steps, "figures": figures, "rows": page}


def _last_of_both(a: RunIndex, b: RunIndex) -> int | None:
    """Return the last step, above 0, after which both runs were evaluated; ``None`` if there is no such step."""
    steps_a, steps_b = (set(cached_figures(index, "by_step eval")["steps"]) for index in (a, b))
    return max(steps_a & steps_b, default=None) or None


def _step(index: RunIndex, split: str, params: Mapping[str, str], name: str, last: int | None) -> int | None:
    """Return the step to compare for run ``name``, "a" or "b"; ``None`` for all training steps.

    ``last`` is the default step for eval; with ``None``, the default is the run's last evaluated step.
    """
    text = params.get(f"{name}_step") or params.get(f"step_{name}") or ""
    if text:
        if not text.isdecimal() or len(text) > 12:
            raise ConfigurationError(f"{name}_step must be the number of a step, not {text[:40]!r}.")
        return int(text)
    if split == "train":
        return None
    if last is not None:
        return last
    with index.reading() as db:
        return last_step(db, split)


def _side(index: RunIndex, split: str, step: int | None) -> dict[str, Side]:
    """Return a run's results on each problem of a split, by the problem's name; ``step=None`` means all steps."""
    with index.reading() as db:
        return CACHE.find((index.file, version_of(db), "side", split, step), lambda: _problems(db, split, step))


def _problems(db: sqlite3.Connection, split: str, step: int | None) -> dict[str, Side]:
    where, values = ("AND e.step = ?", (split, step)) if step is not None else ("", (split,))
    found, heads = {}, common_prefixes(db)
    columns = ", ".join(map(figure_sql, ("pass_rate", "tokens", "reward", "tool_error_share")))
    for name, task, source, text, calls, errors, *figures in db.execute(
        f"SELECT p.name, p.task, p.source, p.question, {count_sql('calls')}, {count_sql('errors')},"
        f" sum(available), count(*), {columns} FROM episodes e JOIN problems p ON p.id = e.problem"
        f" WHERE e.split = ? {where} GROUP BY e.problem ORDER BY p.name",
        values,
    ):
        named = dict(zip(("n", "played", "success", "tokens", "reward", "tool_error_share"), figures, strict=True))
        found[name] = {
            "about": {"task": task, "source": source, "question": short_question(text, task, heads)},
            "figures": named | {"calls": calls or 0, "errors": errors or 0},
        }
    return found


def _row(name: str, a: Side, b: Side) -> dict[str, Any]:
    before, after = a["figures"]["success"], b["figures"]["success"]
    difference = None if before is None or after is None else after - before
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


def _figures(rows: list[dict[str, Any]], sides: list[dict[str, Side]], key: tuple[Any, ...]) -> dict[str, Any]:
    """Return the mean success rate of each run over the shared problems, their difference, and counts by ``change``.

    The 95 % interval of the difference is cached under ``key``.
    """
    both = [row for row in rows if row["difference"] is not None]
    a = np.array([row["a"]["success"] for row in both], dtype=np.float64)
    b = np.array([row["b"]["success"] for row in both], dtype=np.float64)
    interval, p = CACHE.find((*key, a.tobytes(), b.tobytes()), lambda: paired(a, b))
    changes = [row["change"] for row in both]
    return {
        "problems": len(both),
        "a": _mean(a),
        "b": _mean(b),
        "difference": as_float(interval.value),
        "low": as_float(interval.low),
        "high": as_float(interval.high),
        "p": p,
        "gained": changes.count("gained"),
        "lost": changes.count("lost"),
        "same": changes.count("same"),
        "single": sum(1 in (row["a"]["n"], row["b"]["n"]) for row in both),
        "only_a": len(sides[0].keys() - sides[1].keys()),
        "only_b": len(sides[1].keys() - sides[0].keys()),
    }


def _mean(values: Any) -> float | None:
    return float(values.mean()) if len(values) else None


def _sorted(rows: list[dict[str, Any]], sort: str) -> list[dict[str, Any]]:
    name = sort.removeprefix("-") or "problem_id"
    if name in ("a", "b"):
        values = [row[name]["success"] for row in rows]
    elif name in ("problem_id", "question", "task", "source", "difference"):
        values = [row[name] for row in rows]
    else:
        raise ConfigurationError(
            f"The list cannot be sorted by {name[:40]!r}: choose problem_id, question, task, source, "
            "difference, a or b."
        )
    known = [at for at, value in enumerate(values) if value is not None]
    known.sort(key=lambda at: values[at], reverse=sort.startswith("-"))
    return [rows[at] for at in known] + [row for row, value in zip(rows, values, strict=True) if value is None]


def _keys(index: RunIndex, split: str, step: int | None, problem: str) -> dict[str, Any]:
    """Return ``keys``, the keys of a run's newest episodes on a problem; and ``key``, the first of them or ``None``."""
    where, values = ("AND e.step = ?", [step]) if step is not None else ("", [])
    found = index.query(
        "SELECT e.split, e.step, e.line, f.rank FROM problems p JOIN episodes e ON e.problem = p.id"
        f" JOIN files f ON f.id = e.file WHERE p.name = ? AND e.split = ? {where}"
        f" ORDER BY e.step DESC, e.grp, e.member LIMIT {_KEYS}",
        [problem, split, *values],
    )
    keys = [episode_key(*place) for place in found]
    return {"keys": keys, "key": keys[0] if keys else None}


def differing_options(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that differ between two runs, by dotted name; a missing option is null."""
    flat_a, flat_b = _flat(a), _flat(b)
    names = sorted(name for name in flat_a.keys() | flat_b.keys() if flat_a.get(name) != flat_b.get(name))
    rows = [{"path": name, "a": flat_a.get(name), "b": flat_b.get(name)} for name in names[:_MOST_OPTIONS]]
    return {"options": rows}


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, Mapping) and (value or not path):
        found: dict[str, Any] = {}
        for name, child in value.items():
            found |= _flat(child, f"{path}.{name}" if path else str(name))
        return found
    return {path: value if isinstance(value, (str, int, float, bool, type(None))) else json.dumps(value, default=str)}
