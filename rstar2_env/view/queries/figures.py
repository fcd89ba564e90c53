"""Figures over the episodes of a run: by step (statuses, ends, reasons, rounds) and of a split as a whole."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from rstar2_env.view.index import RunIndex
from rstar2_env.view.queries.filters import RANGES
from rstar2_env.view.queries.rows import added, counts_in

MOST_VALUES = 40


def kept_by_step(index: RunIndex, split: str) -> dict[str, Any]:
    """As ``by_step``, kept in the index."""
    found: dict[str, Any] = index.kept(f"by_step {split}", lambda: by_step(index, split))
    return found


def kept_of_splits(index: RunIndex) -> dict[str, Any]:
    """As ``of_splits``, kept in the index."""
    found: dict[str, Any] = index.kept("figures", lambda: of_splits(index))
    return found


def kept_columns(index: RunIndex) -> list[dict[str, Any]]:
    """As ``columns_of``, kept in the index."""
    found: list[dict[str, Any]] = index.kept("columns", lambda: columns_of(index))
    return found


def warm(index: RunIndex) -> None:
    """Make what is kept, so that whoever looks at the run first does not wait for it."""
    kept_columns(index)
    kept_of_splits(index)
    for split in ("train", "eval"):
        kept_by_step(index, split)


def by_step(index: RunIndex, split: str) -> dict[str, Any]:
    """How the calls and the episodes of each step went, as counts by name; and its groups by their round.

    Args:
        index: The run's.
        split: ``train`` or ``eval``.
    """
    with index.reading() as db:
        sizes = dict(db.execute("SELECT step, count(*) FROM episodes WHERE split = ? GROUP BY step", (split,)))
        steps = sorted(sizes)
        answer: dict[str, Any] = {"steps": steps, "episodes": [sizes[step] for step in steps]}
        place = {step: at for at, step in enumerate(steps)}
        for name, column in (("statuses", "statuses"), ("injected", "injected")):
            series: dict[str, list[int]] = {}
            for step, text, times in db.execute(
                f"SELECT step, {column}, count(*) FROM episodes WHERE split = ? AND {column} != ''"
                f" GROUP BY step, {column}",
                (split,),
            ):
                for status, count in counts_in(text).items():
                    series.setdefault(status, [0] * len(steps))[place[step]] += count * times
            answer[name] = series
        for name, column in (("ends", "end"), ("reasons", "reason")):
            series = {}
            for step, value, times in db.execute(
                f"SELECT step, {column}, count(*) FROM episodes WHERE split = ? AND {column} != ''"
                f" GROUP BY step, {column}",
                (split,),
            ):
                series.setdefault(value, [0] * len(steps))[place[step]] += times
            answer[name] = series
        series = {}
        for step, round_, groups in db.execute(
            "SELECT step, round, count(DISTINCT grp) FROM episodes WHERE split = ? GROUP BY step, round", (split,)
        ):
            series.setdefault(str(round_), [0] * len(steps))[place[step]] = groups
        answer["rounds"] = series
    return answer


def figures_of(db: sqlite3.Connection, where: str, values: tuple[Any, ...]) -> dict[str, Any] | None:
    """Figures of the episodes that a condition means; means leave out those that count in none.

    Args:
        db: The index.
        where: The condition on ``episodes``.
        values: Its values.
    """
    count, problems, success, reward, tokens, turns, calls, errors, right_calls, right_errors = db.execute(
        "SELECT count(*), count(DISTINCT problem), avg(CASE WHEN available THEN correct END),"
        " avg(CASE WHEN available THEN reward END), avg(CASE WHEN available THEN tokens END),"
        " avg(CASE WHEN available THEN turns END), sum(CASE WHEN available THEN calls END),"
        " sum(CASE WHEN available THEN errors END),"
        " sum(CASE WHEN available AND correct THEN calls END), sum(CASE WHEN available AND correct THEN errors END)"
        f" FROM episodes WHERE {where}",
        values,
    ).fetchone()
    if not count:
        return None

    def counts(column: str) -> dict[str, int]:
        found = db.execute(
            f"SELECT {column}, count(*) FROM episodes WHERE {where} AND {column} != '' GROUP BY {column}", values
        )
        return added((counts_in(text), times) for text, times in found.fetchall())

    ends = db.execute(f"SELECT end, count(*) FROM episodes WHERE {where} GROUP BY end ORDER BY 2 DESC", values)
    return {
        "episodes": count,
        "problems": problems,
        "success": success,
        "reward": reward,
        "tool_error_share": errors / calls if calls else None,
        "tool_error_share_correct": right_errors / right_calls if right_calls else None,
        "tokens": tokens,
        "turns": turns,
        "calls": calls or 0,
        "ends": dict(ends.fetchall()),
        "statuses": counts("statuses"),
        "injected": counts("injected"),
    }


def last_step(db: sqlite3.Connection, split: str) -> int | None:
    """The last step that a split has episodes of."""
    found: int | None = db.execute("SELECT max(step) FROM episodes WHERE split = ?", (split,)).fetchone()[0]
    return found


def of_splits(index: RunIndex) -> dict[str, Any]:
    """Figures of all episodes of training, and of those of the last evaluation."""
    with index.reading() as db:
        step = last_step(db, "eval")
        return {
            "train": figures_of(db, "split = 'train'", ()),
            "eval": None if step is None else figures_of(db, "split = 'eval' AND step = ?", (step,)),
        }


def columns_of(index: RunIndex) -> list[dict[str, Any]]:
    """The columns of the table of episodes that hold something in this run, with what they can be filtered by."""
    found: list[dict[str, Any]] = []

    def add(name: str, kind: str, by: str | None, **more: Any) -> None:
        column = {"name": name, "label": _LABELS.get(name, name.replace("_", " ")), "type": kind, "filter": by}
        found.append({**column, "sortable": True, "values": None, "min": None, "max": None, **more})

    with index.reading() as db:
        if db.execute("SELECT 1 FROM episodes LIMIT 1").fetchone() is None:
            return []
        for name in ("split", "end", "reason", "source"):
            values = _values(db, f"SELECT {name}, count(*) FROM episodes GROUP BY 1 ORDER BY 2 DESC")
            if values:
                add(name, "text", "values", values=values[:MOST_VALUES])
        for name, column in (("task", "task"), ("problem_source", "source"), ("difficulty", "difficulty")):
            values = _values(
                db,
                f"SELECT p.{column}, count(*) FROM episodes e JOIN problems p ON p.id = e.problem GROUP BY 1"
                " ORDER BY 2 DESC",
            )
            if values:
                add(name, "text", "values" if len(values) <= MOST_VALUES else "text", values=values[:MOST_VALUES])
        picked = ", ".join(f"min({column[2:]}), max({column[2:]})" for column in RANGES.values())
        bounds = db.execute(f"SELECT {picked} FROM episodes").fetchone()
        for at, name in enumerate(RANGES):
            low, high = bounds[2 * at], bounds[2 * at + 1]
            if low is not None:
                add(name, "number", "range", min=low, max=high)
        for name in ("statuses", "injected"):
            rows = db.execute(f"SELECT {name}, count(*) FROM episodes WHERE {name} != '' GROUP BY 1").fetchall()
            if rows:
                counts = added((counts_in(text), times) for text, times in rows)
                values = [{"value": value, "count": count} for value, count in counts.items()]
                add(name, "counts", "values", values=values[:MOST_VALUES])
        add("correct", "flag", "flag")
        if db.execute("SELECT 1 FROM episodes WHERE kept IS NOT NULL LIMIT 1").fetchone():
            add("kept", "flag", "flag")
    add("group", "number", "text")
    add("member", "number", "text")
    add("problem_id", "text", "text")
    add("question", "text", "text")
    return found


_LABELS: Mapping[str, str] = {
    "policy_tokens": "tokens",
    "problem_id": "problem",
    "problem_source": "source of the problem",
    "source": "played by",
    "statuses": "calls by status",
    "injected": "injected faults",
    "errors": "failed calls",
    "version": "version of the weights",
}


def _values(db: sqlite3.Connection, statement: str) -> list[dict[str, Any]]:
    return [{"value": value, "count": count} for value, count in db.execute(statement) if value not in ("", None)]
