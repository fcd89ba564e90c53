"""Queries about the problems of a run, with their success rates in total and by step."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rstar2_env.view.index import RunIndex
from rstar2_env.view.queries.episodes import page_of
from rstar2_env.view.queries.figures import figure_sql, ratio_sql
from rstar2_env.view.queries.filters import FIELDS, number_of, read_filter, read_sort
from rstar2_env.view.queries.rows import FROM, PLACE, cached_ids, common_prefixes, rows_of, short_question

TREND = 24
"""Maximum number of steps in the trend of a problem; only the last steps are shown."""
_MOST_EPISODES = 200
_FIGURES = {"success": "pass_rate", **{name: name for name in ("reward", "tokens", "tool_error_share")}}
_OF_PROBLEM = "problem = ? AND (? = '' OR split = ?)"
_SUCCESS = figure_sql("pass_rate")
_SUMS = ", ".join(part for name in _FIGURES.values() for part in ratio_sql(name))
"""SQL expressions of the numerator and the denominator of each metric, in the order of ``_FIGURES``."""
_SORTS: Mapping[str, str] = {
    **{name: FIELDS[name] for name in ("problem_id", "task", "difficulty", "question")},
    "source": FIELDS["problem_source"],
    "seen": "count(*)",
    **{shown: figure_sql(name) for shown, name in _FIGURES.items()},
    "last_step": "max(e.step)",
    "steps": "count(DISTINCT e.step)",
}


def list_problems(index: RunIndex, params: Mapping[str, str]) -> dict[str, Any]:
    """Return one page of a run's list of problems: ``rows``, and ``total``, the number of matching problems.

    Args:
        index: Index of the run.
        params: ``split``, ``step``, ``task``, ``source`` (of the problem), ``difficulty``, ``q`` (substring of the id
            or question), ``min_success``, ``max_success``, ``sort``, ``offset``, ``limit``.

    Raises:
        ConfigurationError: A value is invalid.
    """
    offset, limit = page_of(params)
    named = {name: params[name] for name in ("split", "step", "task", "difficulty") if name in params}
    named |= {to: params[name] for name, to in (("source", "problem_source"), ("q", "problem_q")) if params.get(name)}
    wanted, order = read_filter(named), read_sort(params.get("sort", ""), _SORTS, "p.name")
    bounds, values = [], list(wanted.values)
    for name, sign in (("min_success", ">="), ("max_success", "<=")):
        if params.get(name):
            bounds.append(f"{_SUCCESS} {sign} ?")
            values.append(number_of(name, params[name]))
    having = " AND ".join(bounds) or "1"
    statement = f"SELECT p.id FROM {FROM} WHERE {wanted.where} GROUP BY e.problem HAVING {having} ORDER BY {order}"
    with index.reading() as db:
        found = cached_ids(index, db, statement, values)
        rows = [problem_row(db, number, params.get("split", "")) for number in found[offset : offset + limit]]
    return {"total": len(found), "rows": rows}


def problem_row(db: sqlite3.Connection, number: int, split: str) -> dict[str, Any]:
    """Return one problem's row for the list of problems.

    Args:
        db: Connection to the index.
        number: Id of the problem in the index.
        split: ``train`` or ``eval``; empty for both.
    """
    name, task, source, difficulty, question = db.execute(
        "SELECT name, task, source, difficulty, question FROM problems WHERE id = ?", (number,)
    ).fetchone()
    steps = _by_step(db, number, split)
    sums = [sum(step.sums[at] or 0 for step in steps) for at in range(2 * len(_FIGURES))]
    return {
        "problem_id": name,
        "task": task,
        "source": source,
        "difficulty": difficulty,
        "question": short_question(question, task, common_prefixes(db), 300),
        "seen": sum(step.episodes for step in steps),
        **{name: _ratio(sums, at) for at, name in enumerate(_FIGURES)},
        "trend": [_ratio(step.sums) for step in steps if step.available][-TREND:],
        "last_step": steps[-1].step if steps else None,
        "steps": len(steps),
    }


class _Step(NamedTuple):
    """A problem's episodes at one step: their number, the number of available ones, and the sums for each metric."""

    step: int
    episodes: int
    available: int
    sums: tuple[float | None, ...]


def _by_step(db: sqlite3.Connection, number: int, split: str) -> list[_Step]:
    """Return the steps at which a problem was played, with the sums that the problem's row and page need."""
    rows = db.execute(
        f"SELECT step, count(*), sum(available), {_SUMS} FROM episodes WHERE {_OF_PROBLEM} GROUP BY step ORDER BY step",
        (number, split, split),
    )
    return [_Step(step, episodes, available, tuple(sums)) for step, episodes, available, *sums in rows]


def _ratio(sums: Sequence[float | None], at: int = 0) -> float | None:
    """Return metric number ``at``; ``sums`` has the numerator and denominator of each metric. ``None`` without data."""
    over, under = sums[2 * at : 2 * at + 2]
    return over / under if over is not None and under else None


def find_problem(index: RunIndex, name: str, params: Mapping[str, str]) -> dict[str, Any]:
    """Return one problem with its success rates by step and its newest episodes.

    Keys: the keys of ``problem_row``; ``gold``; ``rate``, the success rate over all steps; ``steps``; the lists
    ``success`` (rate) and ``count`` (available episodes), with one value for each step; and ``episodes``.

    Raises:
        KeyError: There is no such problem.
    """
    split = params.get("split", "")
    with index.reading() as db:
        found = db.execute("SELECT id, gold, question FROM problems WHERE name = ?", (name,)).fetchone()
        if found is None:
            raise KeyError(name)
        number, gold, question = found
        row = problem_row(db, number, split)
        if not row["seen"]:
            raise KeyError(name)
        steps = [step for step in _by_step(db, number, split) if step.available]
        order = ", ".join(f"{column.strip()} DESC" for column in PLACE.split(",")[:3])
        numbers = db.execute(
            f"SELECT e.id FROM episodes e WHERE {_OF_PROBLEM} ORDER BY {order}, e.grp, e.member LIMIT {_MOST_EPISODES}",
            (number, split, split),
        ).fetchall()
        episodes = rows_of(db, [number for (number,) in numbers])
    return {
        **row,
        "question": question,
        "gold": gold,
        "steps": [step.step for step in steps],
        "rate": row["success"],
        "success": [_ratio(step.sums) for step in steps],
        "count": [step.available for step in steps],
        "episodes": episodes,
    }
