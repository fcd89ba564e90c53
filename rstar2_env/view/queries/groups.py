"""Queries about groups of episodes: which episodes the selector kept or dropped, why, and the values it used.

A group is identified by split, step, round and number. Its ``marks`` have one letter per episode: ``C`` correct and
kept, ``c`` correct and dropped, ``W`` wrong and kept, ``w`` wrong and dropped, ``x`` excluded from means.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rstar2_env.view.index import RunIndex
from rstar2_env.view.queries.episodes import page_of
from rstar2_env.view.queries.figures import figure_sql
from rstar2_env.view.queries.filters import FIELDS, flag, read_filter, read_sort
from rstar2_env.view.queries.rows import FROM, PLACE, cached_ids, common_prefixes, neighbour_of, rows_of, short_question

_GROUP = "e.split, e.step, e.round, e.grp"
_NEWEST = "e.split DESC, e.step DESC, e.round, e.grp"
_FIGURES: Mapping[str, str] = {
    "success": figure_sql("pass_rate"),
    "kept_success": figure_sql("pass_rate", "kept"),
    "mean_reward": figure_sql("reward"),
    "reward": figure_sql("reward"),
    "kept_reward": figure_sql("reward", "kept"),
    "tool_error_share": figure_sql("tool_error_share"),
    "kept_tool_error_share": figure_sql("tool_error_share", "kept"),
}
_SORTS: Mapping[str, str] = {
    **{name: FIELDS[name] for name in ("step", "group", "round", "problem_id", "task")},
    "rounds": FIELDS["round"],
    "played": "count(*)",
    "kept": "sum(e.kept)",
    **_FIGURES,
    "rejected": "coalesce(sum(e.kept), 1) = 0",
}
_FILTERS = ("split", "step", "problem", "problem_q", "round", "group", "task")
_MOST_EPISODES = 4096
_FROM_LINES = ("weighed", "copies", "parent", "seed", "rewards", "answer_tags")
"""Fields that are only in an episode's line of the episode file, not in the index."""


def list_groups(index: RunIndex, params: Mapping[str, str]) -> dict[str, Any]:
    """Return one page of a run's list of groups: ``rows``, and ``total``, the number of matching groups.

    Args:
        index: Index of the run.
        params: ``split``, ``step``, ``problem`` (id), ``q`` (substring of the problem's id or question), ``round``,
            ``task``, ``rejected`` (whether no episode was kept for training), ``sort``, ``offset``, ``limit``.

    Raises:
        ConfigurationError: A value is invalid.
    """
    offset, limit = page_of(params)
    named = {name: params[name] for name in _FILTERS if name in params}
    if params.get("q"):
        named["problem_q"] = params["q"]
    wanted, order = read_filter(named), read_sort(params.get("sort", ""), _SORTS, _GROUP, _NEWEST)
    having = _rejected(params.get("rejected", ""))
    tables = FROM if "p." in wanted.where + order else "episodes e"
    statement = (
        f"SELECT min(e.id) FROM {tables} WHERE {wanted.where} GROUP BY {_GROUP} HAVING {having} ORDER BY {order}"
    )
    with index.reading() as db:
        found = cached_ids(index, db, statement, wanted.values)
        rows = [_row(db, number) for number in found[offset : offset + limit]]
    return {"total": len(found), "rows": rows}


def _rejected(text: str) -> str:
    if not text:
        return "1"
    return f"coalesce(sum(e.kept), 1) {'=' if flag('rejected', text) else '!='} 0"


def find_group(index: RunIndex, step: int, group: int, params: Mapping[str, str]) -> dict[str, Any]:
    """Return one group: its table row, and ``episodes``, ``quotas`` and ``neighbours``.

    ``quotas`` is the result of ``_quotas``; ``neighbours`` has ``previous`` and ``next``, results of ``_neighbour``.

    Args:
        index: Index of the run.
        step: Step of the group.
        group: Number of the group within the step.
        params: ``split`` [default: train] and ``round`` [default: the first].

    Raises:
        ConfigurationError: A value is invalid.
        KeyError: There is no such group.
    """
    named = {name: params[name] for name in ("round",) if params.get(name)}
    wanted = read_filter({**named, "split": params.get("split") or "train", "step": str(step), "group": str(group)})
    with index.reading() as db:
        first = db.execute(f"SELECT e.id FROM episodes e WHERE {wanted.where} ORDER BY {PLACE} LIMIT 1", wanted.values)
        number = first.fetchone()
        if number is None:
            raise KeyError(f"group {step}/{group}")
        found = _row(db, number[0])
        place = _place_of(db, number[0])
        lines = db.execute(
            f"SELECT e.id, f.name, e.start, e.at, e.length FROM {FROM} WHERE ({_GROUP}) = (?, ?, ?, ?)"
            f" ORDER BY {PLACE} LIMIT {_MOST_EPISODES}",
            place,
        ).fetchall()
        rows = rows_of(db, [number for number, *_ in lines])
        neighbours = {"previous": _neighbour(db, place, after=False), "next": _neighbour(db, place, after=True)}
    for (_, *line), row in zip(lines, rows, strict=True):
        with contextlib.suppress(OSError, EOFError):
            record = index.record(*line)
            row |= {name: record[name] for name in _FROM_LINES if name in record}
    return {**found, "neighbours": neighbours, "quotas": _quotas(rows), "episodes": rows}


def _place_of(db: sqlite3.Connection, number: int) -> tuple[Any, ...]:
    found: tuple[Any, ...] = db.execute(f"SELECT {_GROUP} FROM episodes e WHERE e.id = ?", (number,)).fetchone()
    return found


def _row(db: sqlite3.Connection, number: int) -> dict[str, Any]:
    """Return the table row of the group that contains the episode with the id ``number``."""
    split, step, round_, group = place = _place_of(db, number)
    problem, task, question = db.execute(
        f"SELECT p.name, p.task, p.question FROM {FROM} WHERE e.id = ?", (number,)
    ).fetchone()
    episodes = db.execute(
        "SELECT e.kept, e.correct, e.available, e.reason, e.end FROM episodes e"
        f" WHERE ({_GROUP}) = (?, ?, ?, ?) ORDER BY {PLACE} LIMIT {_MOST_EPISODES}",
        place,
    ).fetchall()
    figures = db.execute(
        f"SELECT {', '.join(_FIGURES.values())} FROM episodes e WHERE ({_GROUP}) = (?, ?, ?, ?)", place
    ).fetchone()
    trains = any(kept is not None for kept, *_ in episodes)
    return {
        "split": split,
        "step": step,
        "round": round_,
        "rounds": round_,
        "group": group,
        "problem_id": problem,
        "task": task,
        "question": short_question(question, task, common_prefixes(db)),
        "played": len(episodes),
        "kept": sum(bool(one[0]) for one in episodes) if trains else None,
        **dict(zip(_FIGURES, figures, strict=True)),
        "rejected": trains and not any(one[0] for one in episodes),
        "reasons": dict(Counter(one[3] for one in episodes if one[3])),
        "ends": dict(Counter(one[4] for one in episodes)),
        "marks": "".join(_mark(*one[:3]) for one in episodes),
    }


def _mark(kept: int | None, correct: int, available: int) -> str:
    if not available:
        return "x"
    letter = "C" if correct else "W"
    return letter if kept or kept is None else letter.lower()


def _quotas(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Count a group's ``right`` and ``wrong`` episodes: all (``played``), and those kept for training (``kept``)."""
    found = {}
    for name, correct in (("right", True), ("wrong", False)):
        side = [row for row in rows if row["correct"] is correct]
        found[name] = {"played": len(side), "kept": sum(bool(row["kept"]) for row in side)}
    return found


def _neighbour(db: sqlite3.Connection, place: Sequence[Any], *, after: bool) -> list[int] | None:
    """Return step, number and round of the next (``after``) or previous group of the same split, or ``None``."""
    found = neighbour_of(db, "e.step, e.grp, e.round", _GROUP, place, after=after)
    return None if found is None else list(found)
