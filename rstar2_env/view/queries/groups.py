"""Groups: who of each was kept and who was dropped, for which reason, and by which numbers the selector chose.

A group is named by split, step, round and number. The picture of one, ``marks``, has a letter an episode: ``C`` right
and kept, ``c`` right and dropped, ``W`` and ``w`` wrong ones, ``x`` one that counts in no mean.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rstar2_env.core.errors import RecordFormatError
from rstar2_env.view.index import RunIndex
from rstar2_env.view.index.facts import parsed
from rstar2_env.view.index.growing import Place
from rstar2_env.view.queries.episodes import page_of
from rstar2_env.view.queries.filters import flag, read_filter, read_sort
from rstar2_env.view.queries.kept import KEPT
from rstar2_env.view.queries.rows import FROM, PLACE, heads_of, rows_of, short_question, version_of

_GROUP = "e.split, e.step, e.round, e.grp"
_SORTS: Mapping[str, str] = {
    "step": "e.step",
    "group": "e.grp",
    "round": "e.round",
    "rounds": "e.round",
    "problem_id": "p.name",
    "task": "p.task",
    "played": "count(*)",
    "kept": "sum(e.kept)",
    "success": "avg(CASE WHEN e.available THEN e.correct END)",
    "kept_success": "avg(CASE WHEN e.available AND e.kept THEN e.correct END)",
    "mean_reward": "avg(CASE WHEN e.available THEN e.reward END)",
    "reward": "avg(CASE WHEN e.available THEN e.reward END)",
    "tool_error_share": "sum(e.errors) * 1.0 / nullif(sum(e.calls), 0)",
    "rejected": "coalesce(sum(e.kept), 1) = 0",
}
_FILTERS = ("split", "step", "problem", "problem_q", "round", "group", "task")
_MOST_EPISODES = 4096
_FROM_LINES = ("weighed", "copies", "parent", "seed", "rewards", "answer_tags")


def list_groups(index: RunIndex, asked: Mapping[str, str]) -> dict[str, Any]:
    """A page of the groups.

    Args:
        index: The run's.
        asked: ``split``, ``step``, ``problem`` (id), ``q`` (part of its id or question), ``round``, ``task``,
            ``rejected``, ``sort``, ``offset``, ``limit``.

    Raises:
        ConfigurationError: A value is of another form.
    """
    offset, limit = page_of(asked)
    named = {name: asked[name] for name in _FILTERS if name in asked}
    if asked.get("q"):
        named["problem_q"] = asked["q"]
    wanted, order = read_filter(named), read_sort(asked.get("sort", ""), _SORTS, _GROUP)
    having = _rejected(asked.get("rejected", ""))
    tables = FROM if "p." in wanted.where + order else "episodes e"
    statement = (
        f"SELECT min(e.id) FROM {tables} WHERE {wanted.where} GROUP BY {_GROUP} HAVING {having} ORDER BY {order}"
    )
    with index.reading() as db:
        found: array[int] = KEPT.find(
            (index.file, version_of(db), statement, wanted.values),
            lambda: array("q", (row[0] for row in db.execute(statement, wanted.values))),
        )
        rows = [_row(db, number) for number in found[offset : offset + limit]]
    return {"total": len(found), "rows": rows}


def _rejected(text: str) -> str:
    if not text:
        return "1"
    return f"coalesce(sum(e.kept), 1) {'=' if flag('rejected', text) else '!='} 0"


def find_group(index: RunIndex, step: int, group: int, asked: Mapping[str, str]) -> dict[str, Any]:
    """One group with its episodes.

    Args:
        index: The run's.
        step: Its step.
        group: Its number.
        asked: ``split`` (train unless told) and ``round`` (the first that there is).

    Raises:
        ConfigurationError: A value is of another form.
        KeyError: There is no such group.
    """
    named = {name: asked[name] for name in ("round",) if asked.get(name)}
    wanted = read_filter({**named, "split": asked.get("split") or "train", "step": str(step), "group": str(group)})
    with index.reading() as db:
        first = db.execute(f"SELECT e.id FROM episodes e WHERE {wanted.where} ORDER BY {PLACE} LIMIT 1", wanted.values)
        number = first.fetchone()
        if number is None:
            raise KeyError(f"group {step}/{group}")
        found = _row(db, number[0])
        place = _place_of(db, number[0])
        numbers = [
            row[0]
            for row in db.execute(
                f"SELECT e.id FROM episodes e WHERE ({_GROUP}) = (?, ?, ?, ?) ORDER BY {PLACE} LIMIT {_MOST_EPISODES}",
                place,
            )
        ]
        rows = rows_of(db, numbers)
        lines = db.execute(
            f"SELECT e.id, f.name, e.start, e.at, e.length FROM {FROM} WHERE ({_GROUP}) = (?, ?, ?, ?)", place
        ).fetchall()
        neighbours = {"previous": _beside(db, place, after=False), "next": _beside(db, place, after=True)}
    places = {number: (name, Place(*at)) for number, name, *at in lines}
    for number, row in zip(numbers, rows, strict=True):
        row |= _from_line(index, *places[number])
    return {**found, "neighbours": neighbours, "quotas": _quotas(rows), "episodes": rows}


def _place_of(db: sqlite3.Connection, number: int) -> tuple[Any, ...]:
    found: tuple[Any, ...] = db.execute(f"SELECT {_GROUP} FROM episodes e WHERE e.id = ?", (number,)).fetchone()
    return found


def _row(db: sqlite3.Connection, number: int) -> dict[str, Any]:
    """What a table shows of the group that an episode is in."""
    split, step, round_, group = place = _place_of(db, number)
    problem, task, question = db.execute(
        f"SELECT p.name, p.task, p.question FROM {FROM} WHERE e.id = ?", (number,)
    ).fetchone()
    episodes = db.execute(
        "SELECT e.kept, e.correct, e.available, e.reward, e.calls, e.errors, e.reason, e.end FROM episodes e"
        f" WHERE ({_GROUP}) = (?, ?, ?, ?) ORDER BY {PLACE} LIMIT {_MOST_EPISODES}",
        place,
    ).fetchall()
    trains = any(kept is not None for kept, *_ in episodes)
    counted = [one for one in episodes if one[2]]
    kept = [one for one in counted if one[0]]
    return {
        "split": split,
        "step": step,
        "round": round_,
        "rounds": round_,
        "group": group,
        "problem_id": problem,
        "task": task,
        "question": short_question(question, task, heads_of(db)),
        "played": len(episodes),
        "kept": sum(bool(one[0]) for one in episodes) if trains else None,
        "success": _mean([one[1] for one in counted]),
        "kept_success": _mean([one[1] for one in kept]),
        "mean_reward": _mean([one[3] for one in counted]),
        "reward": _mean([one[3] for one in counted]),
        "kept_reward": _mean([one[3] for one in kept]),
        "tool_error_share": _share(counted),
        "kept_tool_error_share": _share(kept),
        "rejected": trains and not any(one[0] for one in episodes),
        "reasons": dict(Counter(one[6] for one in episodes if one[6])),
        "ends": dict(Counter(one[7] for one in episodes)),
        "marks": "".join(_mark(*one[:3]) for one in episodes),
    }


def _mark(kept: int | None, correct: int, available: int) -> str:
    if not available:
        return "x"
    letter = "C" if correct else "W"
    return letter if kept or kept is None else letter.lower()


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _share(episodes: Sequence[tuple[Any, ...]]) -> float | None:
    calls = sum(one[4] for one in episodes)
    return sum(one[5] for one in episodes) / calls if calls else None


def _quotas(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """How many right and wrong episodes there were, and how many of each train."""
    found = {}
    for name, correct in (("right", True), ("wrong", False)):
        side = [row for row in rows if row["correct"] is correct]
        found[name] = {"played": len(side), "kept": sum(bool(row["kept"]) for row in side)}
    return found


def _from_line(index: RunIndex, file: str, place: Place) -> dict[str, Any]:
    """What of a group's episode only its line tells."""
    try:
        record = parsed(index.line(file, place))
    except (OSError, EOFError, RecordFormatError):
        return {}
    return {name: record[name] for name in _FROM_LINES if name in record}


def _beside(db: sqlite3.Connection, place: Sequence[Any], *, after: bool) -> list[int] | None:
    """Step, number and round of the group before or after one, of the same split."""
    order = ", ".join(f"{one} {'ASC' if after else 'DESC'}" for one in ("e.step", "e.round", "e.grp"))
    found = db.execute(
        "SELECT e.step, e.grp, e.round FROM episodes e WHERE e.split = ?"
        f" AND (e.step, e.round, e.grp) {'>' if after else '<'} (?, ?, ?) ORDER BY {order} LIMIT 1",
        tuple(place),
    ).fetchone()
    return None if found is None else list(found)
