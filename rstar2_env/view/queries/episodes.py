"""The table of episodes, with filters, sorting, search and paging; and the full record of one episode.

The ids of matching episodes are cached, so that only the rows of the requested page are read.
"""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Mapping
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder.layout import episode_key
from rstar2_env.view.index import RunIndex
from rstar2_env.view.index.episode_columns import question_of
from rstar2_env.view.index.schema import version_of
from rstar2_env.view.queries.figures import aggregates, cached_figures
from rstar2_env.view.queries.filters import SORTS, EpisodeFilter, read_filter, read_sort, words_query
from rstar2_env.view.queries.result_cache import CACHE
from rstar2_env.view.queries.rows import (
    FROM,
    NEWEST,
    PLACE,
    WITHIN_STEP,
    EpisodeRow,
    id_of,
    neighbour_of,
    read_key,
    rows_of,
)
from rstar2_env.view.queries.scan import scan_for_words

MOST_ROWS = 1000


def list_episodes(index: RunIndex, params: Mapping[str, str]) -> dict[str, Any]:
    """Return one page of a run's table of episodes: ``rows``, and ``total``, the number of matching episodes.

    Args:
        index: Index of the run.
        params: Filters (``queries.filters``), ``sort`` [default: the newest step first], ``offset`` and ``limit``.

    Raises:
        ConfigurationError: A value is invalid.
    """
    offset, limit = page_of(params)
    with index.reading() as db:
        numbers = _cached_ids(index, db, params)
        rows = rows_of(db, numbers[offset : offset + limit].tolist())
    return {"total": len(numbers), "rows": rows}


def aggregate_episodes(index: RunIndex, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the metrics of the episodes that match a filter, as ``figures.aggregates`` returns them.

    Args:
        index: Index of the run.
        params: Filters (``queries.filters``).

    Raises:
        ConfigurationError: A value is invalid.
    """
    wanted = read_filter(params)
    if wanted == read_filter({}):
        found: dict[str, Any] = cached_figures(index, "aggregates")
        return found
    with index.reading() as db:
        return CACHE.find((index.file, version_of(db), wanted, "aggregates"), lambda: _aggregates(index, db, params))


def _aggregates(index: RunIndex, db: sqlite3.Connection, params: Mapping[str, str]) -> dict[str, Any]:
    wanted = read_filter(params)
    if wanted.q:
        numbers = json.dumps(_cached_ids(index, db, params).tolist())
        return aggregates(db, "id IN (SELECT value FROM json_each(?))", (numbers,))
    tables = FROM if "p." in wanted.where else "episodes e"
    return aggregates(db, f"id IN (SELECT e.id FROM {tables} WHERE {wanted.where})", wanted.values)


def find_place(index: RunIndex, params: Mapping[str, str], key: str) -> dict[str, Any]:
    """Return an episode's ``place`` in the table (from 0), the table's ``total``, and its neighbours' keys.

    The neighbours are ``previous`` and ``next``.

    Args:
        index: Index of the run.
        params: Filters and ``sort``, as for the table.
        key: Key of the episode. If the filters exclude the episode, place and neighbours are ``None``.

    Raises:
        ConfigurationError: The key or another value is invalid.
        KeyError: There is no such episode.
    """
    with index.reading() as db:
        number, numbers = id_of(db, key), _cached_ids(index, db, params)
        place = numbers.index(number) if number in numbers else None
        neighbours: list[str | None] = [None, None]
        if place is not None:
            around = [numbers[at : at + 1].tolist() if at >= 0 else [] for at in (place - 1, place + 1)]
            neighbours = [rows_of(db, ids)[0]["key"] if ids else None for ids in around]
    return {"total": len(numbers), "place": place, "previous": neighbours[0], "next": neighbours[1]}


def _cached_ids(index: RunIndex, db: sqlite3.Connection, params: Mapping[str, str]) -> array[int]:
    wanted, order = read_filter(params), read_sort(params.get("sort", ""), SORTS, PLACE, NEWEST)
    return CACHE.find(
        (index.file, version_of(db), wanted, order), lambda: array("q", matching_ids(index, db, wanted, order))
    )


def page_of(params: Mapping[str, str], most: int = MOST_ROWS, default: int = 100) -> tuple[int, int]:
    """Return ``offset`` and ``limit`` from a query's parameters; ``limit`` is ``default`` if missing, at most ``most``.

    Raises:
        ConfigurationError: A value is not a whole number.
    """
    try:
        offset, limit = int(params.get("offset") or 0), int(params.get("limit") or default)
    except ValueError:
        raise ConfigurationError("offset and limit must be whole numbers.") from None
    return min(max(offset, 0), 2**62), min(max(limit, 1), most)


def matching_ids(index: RunIndex, db: sqlite3.Connection, params: EpisodeFilter, order: str) -> list[int]:
    """Return the ids of the episodes that match a filter, sorted by the SQL expression ``order``."""
    where, values = params.where, list(params.values)
    if params.q and index.searches_words:
        where = f"({where}) AND e.id IN (SELECT rowid FROM words WHERE words MATCH ?)"
        values.append(words_query(params.q))
    tables = FROM if "p." in where + order else "episodes e"
    if order == NEWEST and not (params.q and index.searches_words):
        # A query for each step reads the rows in the order of an SQL index; one query over all steps would have to sort
        # them. A search for words is one query, since it would be evaluated again for each step.
        statement = f"SELECT e.id FROM {tables} WHERE e.split = ? AND e.step = ? AND ({where}) ORDER BY {WITHIN_STEP}"
        steps = db.execute("SELECT DISTINCT split, step FROM episodes ORDER BY split DESC, step DESC").fetchall()
        found = [number for step in steps for (number,) in db.execute(statement, (*step, *values))]
    else:
        statement = f"SELECT e.id FROM {tables} WHERE {where} ORDER BY {order}"
        found = [number for (number,) in db.execute(statement, values)]
    if params.q and not index.searches_words:
        words_query(params.q)  # raises for the same invalid searches
        found = scan_for_words(index, db, found, params.q)
    return found


def find_episode(index: RunIndex, key: str) -> dict[str, Any]:
    """Return one episode: the fields of its record, and ``key``, ``row``, ``question``, ``gold`` and ``verdict``.

    ``row`` is the episode's row in the table of episodes. Further keys are ``mates`` (all episodes of the group),
    ``previous`` and ``next`` (keys of adjacent episodes of the split, or ``None``), ``has_tokens`` and ``notes``.

    Raises:
        ConfigurationError: The key is invalid.
        KeyError: There is no such episode.
        EOFError: The file has changed since it was indexed; retry.
    """
    with index.reading() as db:
        number = id_of(db, key)
        row = rows_of(db, [number])[0]
        gold, *place = db.execute(
            f"SELECT p.gold, f.name, e.start, e.at, e.length FROM {FROM} WHERE e.id = ?", (number,)
        ).fetchone()
        mates = _mates(db, row)
        around = {"previous": _neighbour(db, number, after=False), "next": _neighbour(db, number, after=True)}
        has_tokens = tokens_place(db, row) is not None
    record = index.record(*place)
    return {
        **record,
        "key": key,
        "row": row,
        "question": question_of(record),
        "mates": mates,
        **around,
        "has_tokens": has_tokens,
        "gold": record.get("gold", gold),
        "verdict": verdict_of(record),
        "notes": [],
    }


def tokens_place(db: sqlite3.Connection, row: EpisodeRow) -> tuple[Any, ...] | None:
    """Return the file and the position of the line with an episode's tokens; ``None`` if the tokens were not stored."""
    if row["split"] != "train":
        return None
    found: tuple[Any, ...] | None = db.execute(
        "SELECT f.name, t.start, t.at, t.length FROM tokens t JOIN files f ON f.id = t.file"
        " WHERE t.step = ? AND t.grp = ? AND t.member = ? ORDER BY f.rank != ? LIMIT 1",
        (row["step"], row["group"], row["member"], read_key(row["key"])[3]),
    ).fetchone()
    return found


def _mates(db: sqlite3.Connection, row: EpisodeRow) -> list[dict[str, Any]]:
    found = db.execute(
        "SELECT e.split, e.step, e.line, f.rank, e.member, e.kept, e.correct, e.reward FROM episodes e"
        " JOIN files f ON f.id = e.file WHERE e.split = ? AND e.step = ? AND e.round = ? AND e.grp = ?"
        f" ORDER BY {PLACE} LIMIT 1000",
        (row["split"], row["step"], row["round"], row["group"]),
    ).fetchall()
    return [
        {
            "key": episode_key(*where),
            "member": member,
            "kept": None if kept is None else bool(kept),
            "correct": bool(correct),
            "reward": reward,
        }
        for *where, member, kept, correct, reward in found
    ]


def _neighbour(db: sqlite3.Connection, number: int, *, after: bool) -> str | None:
    """Return the key of the episode that follows (``after``) or precedes episode ``number`` (an id) in its split."""
    place = db.execute(f"SELECT {PLACE} FROM episodes e WHERE e.id = ?", (number,)).fetchone()
    found = neighbour_of(db, "e.split, e.step, e.line, f.rank", PLACE, place, after=after)
    return None if found is None else episode_key(*found)


def verdict_of(record: Mapping[str, Any]) -> dict[str, str] | None:
    """Return ``reason`` and ``method`` of an episode's grade, from ``info["verdict"]`` of its last turn."""
    turns = record.get("steps")
    last = turns[-1] if isinstance(turns, list) and turns else None
    info = last.get("info") if isinstance(last, dict) else None
    verdict = info.get("verdict") if isinstance(info, dict) else None
    if not isinstance(verdict, dict) or not isinstance(verdict.get("reason"), str):
        return None  # no graded answer, or an environment that stores something else in this field
    method = verdict.get("method")
    return {"reason": verdict["reason"], "method": method if isinstance(method, str) else ""}
