"""Computes metrics of a run's episodes, by step and by split, and the columns of the table of episodes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rstar2_env.core.episode_metrics import FIGURES
from rstar2_env.view.index import RunIndex
from rstar2_env.view.index.episode_columns import ERRORS
from rstar2_env.view.queries.filters import FIELDS, RANGES
from rstar2_env.view.queries.rows import parse_counts, sum_counts

MOST_VALUES = 40
"""Number of values offered for one filter: at most this many from all episodes, and as many from each split."""

_SHOWN = {
    "success": "pass_rate",
    **{name: name for name in ("reward", "tool_error_share", "tool_error_share_correct", "tokens", "turns")},
}
"""Names of the metrics that ``figures_of`` returns, each with the metric's name in ``FIGURES``."""
_COLUMNS = {
    "episodes": "1",
    "tokened": "tokens > 0",
    "errors_correct": "correct * errors",
    "calls_correct": "correct * calls",
}
"""SQL expression of each count that is not itself a column of the index."""


def count_sql(count: str, condition: str = "1") -> str:
    """Return the SQL expression for the sum of a count over the episodes that are included in means.

    Args:
        count: Name of a count: a numerator or denominator in ``FIGURES``.
        condition: Additional SQL condition on an episode.
    """
    return f"sum(CASE WHEN available AND {condition} THEN {_COLUMNS.get(count, count)} END)"


def figure_sql(name: str, condition: str = "1") -> str:
    """Return the SQL expression for a metric over the episodes that are included in means; ``NULL`` without data.

    Args:
        name: A name in ``FIGURES``.
        condition: Additional SQL condition on an episode.
    """
    numerator, denominator = ratio_sql(name, condition)
    return f"{numerator} * 1.0 / nullif({denominator}, 0)"


def ratio_sql(name: str, condition: str = "1") -> tuple[str, str]:
    """Return the SQL expressions of a metric's numerator and denominator, whose quotient is the metric.

    Args:
        name: A name in ``FIGURES``.
        condition: Additional SQL condition on an episode.
    """
    figure = FIGURES[name]
    known = f"{condition} AND ({_COLUMNS.get(figure.numerator, figure.numerator)}) IS NOT NULL"
    return count_sql(figure.numerator, condition), count_sql(figure.denominator, known)


CACHED: Mapping[str, Callable[[RunIndex], Any]] = {
    "columns and values by split": lambda index: columns_of(index),
    "figures": lambda index: figures_by_split(index),
    "by_step train": lambda index: figures_by_step(index, "train"),
    "by_step eval": lambda index: figures_by_step(index, "eval"),
    "answered after a failed call": lambda index: answered_after_error(index),
    "rewarded": lambda index: rewarded_episodes(index),
    "aggregates": lambda index: aggregates_of_all(index),
}
"""Queries whose results are cached in the index, by name of the result."""


def cached_figures(index: RunIndex, name: str) -> Any:
    """Return the result of a query in ``CACHED``: from the cache in the index, or computed and then cached."""
    return index.cached(name, lambda: CACHED[name](index))


def warm_cache(index: RunIndex) -> None:
    """Compute the results of all queries in ``CACHED``, so that the first client does not wait for them."""
    for name in CACHED:
        cached_figures(index, name)


def figures_by_step(index: RunIndex, split: str) -> dict[str, Any]:
    """Count at each step: calls by status; episodes by end, and by the reason why they were dropped; groups by round.

    Args:
        index: Index of the run.
        split: ``train`` or ``eval``.

    Returns:
        ``steps``; ``episodes``, the number of episodes at each step; and ``statuses``, ``injected``, ``ends``,
        ``reasons``, ``after_errors`` and ``rounds``, each a dict from a value to its count at each step.
    """
    with index.reading() as db:
        sizes = dict(db.execute("SELECT step, count(*) FROM episodes WHERE split = ? GROUP BY step", (split,)))
        steps = sorted(sizes)
        answer: dict[str, Any] = {"steps": steps, "episodes": [sizes[step] for step in steps]}
        place = {step: at for at, step in enumerate(steps)}
        names = {"statuses": "statuses", "injected": "injected", "ends": "end", "reasons": "reason"}
        names["after_errors"] = "after_error"
        for name, column in names.items():
            series: dict[str, list[int]] = {}
            for step, text, times in db.execute(
                f"SELECT step, {column}, count(*) FROM episodes WHERE split = ? AND {column} != ''"
                f" GROUP BY step, {column}",
                (split,),
            ):
                for value, count in (parse_counts(text) if name == column else {text: 1}).items():
                    series.setdefault(value, [0] * len(steps))[place[step]] += count * times
            answer[name] = series
        series = {}
        for step, round_, groups in db.execute(
            "SELECT step, round, count(DISTINCT grp) FROM episodes WHERE split = ? GROUP BY step, round", (split,)
        ):
            series.setdefault(str(round_), [0] * len(steps))[place[step]] = groups
        answer["rounds"] = series
    return answer


def answered_after_error(index: RunIndex) -> dict[str, int]:
    """Count training episodes that ended with an answer although their last call had failed.

    Returns:
        ``failed``: the number of episodes with a failed call; ``answered``: the number of these episodes whose last
        call failed and that ended with an answer; ``correct``: the number of ``answered`` episodes whose answer is
        right.
    """
    answered = f"end = 'answered' AND last_status IN ({', '.join('?' * len(ERRORS))})"
    counts = f"count(*), sum({answered}), sum(correct AND {answered})"
    with index.reading() as db:
        found = db.execute(
            f"SELECT {counts} FROM episodes WHERE split = 'train' AND errors > 0", (*ERRORS, *ERRORS)
        ).fetchone()
    return dict(zip(("failed", "answered", "correct"), (number or 0 for number in found), strict=True))


def rewarded_episodes(index: RunIndex) -> dict[str, Any]:
    """Count training episodes that may have earned their reward without solving the problem.

    Returns:
        ``reward``: the mean reward of correct episodes, ``None`` if there are none; ``wrong``: the number of wrong
        episodes; ``rewarded``: the number of wrong episodes whose reward is at least that mean; ``correct``: the number
        of correct episodes; ``without_calls``: the number of correct episodes without calls, ``None`` if no episode has
        calls.
    """
    counts = "sum(correct), sum(NOT correct), sum(correct AND calls = 0), max(calls)"
    with index.reading() as db:
        mean, correct, wrong, without_calls, calls = db.execute(
            f"SELECT avg(CASE WHEN correct THEN reward END), {counts} FROM episodes WHERE split = 'train' AND available"
        ).fetchone()
        rewarded = db.execute(
            "SELECT count(*) FROM episodes WHERE split = 'train' AND available AND NOT correct AND reward >= ?", (mean,)
        ).fetchone()[0]
    return {
        "reward": mean,
        "wrong": wrong or 0,
        "rewarded": rewarded,
        "correct": correct or 0,
        "without_calls": without_calls if calls else None,
    }


def figures_of(db: sqlite3.Connection, where: str, values: tuple[Any, ...]) -> dict[str, Any] | None:
    """Return the metrics of the episodes that match a condition, by name; ``None`` without episodes.

    Means exclude episodes that are not ``available``.

    Args:
        db: Connection to the index.
        where: SQL condition on ``episodes``.
        values: Values of the condition's parameters.
    """
    columns = ", ".join(map(figure_sql, _SHOWN.values()))
    count, problems, calls, *shown = db.execute(
        f"SELECT count(*), count(DISTINCT problem), {count_sql('calls')}, {columns} FROM episodes WHERE {where}", values
    ).fetchone()
    if not count:
        return None

    def counts(column: str) -> dict[str, int]:
        found = db.execute(
            f"SELECT {column}, count(*) FROM episodes WHERE {where} AND {column} != '' GROUP BY {column}", values
        )
        return sum_counts((parse_counts(text), times) for text, times in found.fetchall())

    ends = db.execute(f"SELECT end, count(*) FROM episodes WHERE {where} GROUP BY end ORDER BY 2 DESC", values)
    return {
        "episodes": count,
        "problems": problems,
        **dict(zip(_SHOWN, shown, strict=True)),
        "calls": calls or 0,
        "ends": dict(ends.fetchall()),
        "statuses": counts("statuses"),
        "injected": counts("injected"),
    }


def last_step(db: sqlite3.Connection, split: str) -> int | None:
    """Return the last step that has episodes of a split; ``None`` if there is no such step."""
    found: int | None = db.execute("SELECT max(step) FROM episodes WHERE split = ?", (split,)).fetchone()[0]
    return found


def aggregates(db: sqlite3.Connection, where: str, values: tuple[Any, ...]) -> dict[str, Any]:
    """Return metrics of the episodes that match a condition, in total and by step.

    Args:
        db: Connection to the index.
        where: SQL condition on ``episodes``.
        values: Values of the condition's parameters.

    Returns:
        ``figures``, the result of ``figures_of``; ``steps``; and two lists with a value for each step: ``episodes``
        (their number) and ``success`` (the share of correct episodes).
    """
    by_step = db.execute(
        f"SELECT step, count(*), {figure_sql('pass_rate')} FROM episodes WHERE {where} GROUP BY step ORDER BY step",
        values,
    ).fetchall()
    steps, counts, success = (list(column) for column in zip(*by_step, strict=True)) if by_step else ([], [], [])
    return {"figures": figures_of(db, where, values), "steps": steps, "episodes": counts, "success": success}


def aggregates_of_all(index: RunIndex) -> dict[str, Any]:
    """Return the ``aggregates`` of all episodes."""
    with index.reading() as db:
        return aggregates(db, "1", ())


def figures_by_split(index: RunIndex) -> dict[str, Any]:
    """Return metrics of all training episodes (``train``) and of the last evaluation (``eval``).

    A value is ``None`` if there are no such episodes.
    """
    with index.reading() as db:
        step = last_step(db, "eval")
        return {
            "train": figures_of(db, "split = 'train'", ()),
            "eval": None if step is None else figures_of(db, "split = 'eval' AND step = ?", (step,)),
        }


def columns_of(index: RunIndex) -> list[dict[str, Any]]:
    """Return the columns that are not empty in the table of episodes, with the kinds and values of their filters.

    Each of a column's ``values`` has the number of episodes with that value: ``count`` in both splits together,
    ``splits`` by split. If a column has many values, only some are returned: the ``MOST_VALUES`` most frequent by
    ``count``, and the ``MOST_VALUES`` most frequent in each split.
    """
    found: list[dict[str, Any]] = []

    def add(name: str, kind: str, by: str | None, **more: Any) -> None:
        column = {"name": name, "label": _LABELS.get(name, name.replace("_", " ")), "type": kind, "filter": by}
        found.append({**column, "sortable": True, "values": None, "min": None, "max": None, **more})

    with index.reading() as db:
        if db.execute("SELECT 1 FROM episodes LIMIT 1").fetchone() is None:
            return []
        for name in ("split", "end", "reason", "last_status", "after_error", "source"):
            values = _values(db.execute(f"SELECT {name}, split, count(*) FROM episodes GROUP BY 1, 2"))
            if values:
                add(name, "text", "values", values=_most_frequent(values))
        for name, column in (("task", "task"), ("problem_source", "source"), ("difficulty", "difficulty")):
            values = _values(
                db.execute(
                    f"SELECT p.{column}, e.split, count(*) FROM episodes e JOIN problems p ON p.id = e.problem"
                    " GROUP BY 1, 2"
                )
            )
            if values:
                add(name, "text", "values" if len(values) <= MOST_VALUES else "text", values=_most_frequent(values))
        picked = ", ".join(f"min({FIELDS[name]}), max({FIELDS[name]})" for name in RANGES)
        bounds = db.execute(f"SELECT {picked} FROM episodes e").fetchone()
        for at, name in enumerate(RANGES):
            low, high = bounds[2 * at], bounds[2 * at + 1]
            if low is not None:
                add(name, "number", "range", min=low, max=high)
        for name in ("statuses", "injected"):
            rows = db.execute(f"SELECT {name}, split, count(*) FROM episodes WHERE {name} != '' GROUP BY 1, 2")
            values = _values((value, split, times) for text, split, times in rows for value in parse_counts(text))
            if values:
                add(name, "counts", "values", values=_most_frequent(values))
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
    "last_status": "last call",
    "after_error": "after a failed call",
    "injected": "injected faults",
    "errors": "failed calls",
    "version": "version of the weights",
}


def _values(rows: Iterable[tuple[Any, str, int]]) -> list[dict[str, Any]]:
    """Add up rows of (value, split, episodes) by value, the most frequent first; see ``columns_of`` for the keys."""
    splits: dict[Any, dict[str, int]] = {}
    for value, split, episodes in rows:
        if value not in ("", None):
            of_value = splits.setdefault(value, {})
            of_value[split] = of_value.get(split, 0) + episodes
    values = [{"value": value, "count": sum(found.values()), "splits": found} for value, found in splits.items()]
    return sorted(values, key=lambda one: -one["count"])


def _most_frequent(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the ``MOST_VALUES`` most frequent values overall, and as many of each split, sorted by total count."""
    chosen = {value["value"] for value in values[:MOST_VALUES]}
    for split in {split for value in values for split in value["splits"]}:
        ranked = sorted((value for value in values if split in value["splits"]), key=lambda one: -one["splits"][split])
        chosen.update(value["value"] for value in ranked[:MOST_VALUES])
    return [value for value in values if value["value"] in chosen]
