"""The table of episodes: filtered, sorted, searched and paged; and one episode as its line tells it.

The numbers of the episodes that a question means are kept, so that paging costs no more than the rows of a page.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Mapping
from typing import Any

from rstar2_env.core.errors import ConfigurationError, RecordFormatError
from rstar2_env.view.index import RunIndex
from rstar2_env.view.index.facts import parsed, question_of
from rstar2_env.view.index.growing import Place
from rstar2_env.view.queries.filters import SORTS, Filter, read_filter, read_sort, words_query
from rstar2_env.view.queries.kept import KEPT
from rstar2_env.view.queries.rows import FROM, PLACE, Row, id_of, key_of, read_key, rows_of, version_of
from rstar2_env.view.queries.scan import scanned

MOST_ROWS = 1000


def list_episodes(index: RunIndex, asked: Mapping[str, str]) -> dict[str, Any]:
    """A page of the table of episodes.

    Args:
        index: The run's.
        asked: Filters (``queries.filters``), ``sort``, ``offset`` and ``limit``.

    Raises:
        ConfigurationError: A value is of another form.
    """
    offset, limit = page_of(asked)
    with index.reading() as db:
        numbers = _kept_numbers(index, db, asked)
        rows = rows_of(db, numbers[offset : offset + limit].tolist())
    return {"total": len(numbers), "rows": rows}


def find_place(index: RunIndex, asked: Mapping[str, str], key: str) -> dict[str, Any]:
    """Where an episode stands in the table, from 0, and which stand before and after it.

    Args:
        index: The run's.
        asked: Filters and ``sort``, as of the table.
        key: The episode; one that the filters leave out has no place and nothing beside it.

    Raises:
        ConfigurationError: The key is none, or a value is of another form.
        KeyError: There is no such episode.
    """
    with index.reading() as db:
        number, numbers = id_of(db, key), _kept_numbers(index, db, asked)
        place = numbers.index(number) if number in numbers else None
        beside: list[str | None] = [None, None]
        if place is not None:
            around = [numbers[at : at + 1].tolist() if at >= 0 else [] for at in (place - 1, place + 1)]
            beside = [rows_of(db, one)[0]["key"] if one else None for one in around]
    return {"total": len(numbers), "place": place, "previous": beside[0], "next": beside[1]}


def _kept_numbers(index: RunIndex, db: sqlite3.Connection, asked: Mapping[str, str]) -> array[int]:
    wanted, order = read_filter(asked), read_sort(asked.get("sort", ""), SORTS, PLACE)
    found: array[int] = KEPT.find(
        (index.file, version_of(db), wanted, order), lambda: array("q", numbers_of(index, db, wanted, order))
    )
    return found


def page_of(asked: Mapping[str, str], most: int = MOST_ROWS, default: int = 100) -> tuple[int, int]:
    """Offset and limit of an address.

    Raises:
        ConfigurationError: One is no whole number.
    """
    try:
        offset, limit = int(asked.get("offset") or 0), int(asked.get("limit") or default)
    except ValueError:
        raise ConfigurationError("offset and limit must be whole numbers.") from None
    return min(max(offset, 0), 2**62), min(max(limit, 1), most)


def numbers_of(index: RunIndex, db: sqlite3.Connection, asked: Filter, order: str) -> list[int]:
    """The numbers of the episodes that a filter means, in an order."""
    where, values = asked.where, list(asked.values)
    if asked.q and index.searches_words:
        where = f"({where}) AND e.id IN (SELECT rowid FROM words WHERE words MATCH ?)"
        values.append(words_query(asked.q))
    tables = FROM if "p." in where + order else "episodes e"
    found = [row[0] for row in db.execute(f"SELECT e.id FROM {tables} WHERE {where} ORDER BY {order}", values)]
    if asked.q and not index.searches_words:
        words_query(asked.q)  # the same complaint
        found = scanned(index, db, found, asked.q)
    return found


def find_episode(index: RunIndex, key: str) -> dict[str, Any]:
    """One episode: its line, and what stands around it.

    Raises:
        ConfigurationError: The key is none.
        KeyError: There is no such episode.
        EOFError: The file has changed since it was read; ask again.
    """
    with index.reading() as db:
        number = id_of(db, key)
        row = rows_of(db, [number])[0]
        file, start, at, length, gold = db.execute(
            f"SELECT f.name, e.start, e.at, e.length, p.gold FROM {FROM} WHERE e.id = ?", (number,)
        ).fetchone()
        mates = _mates(db, row)
        around = {"previous": _beside(db, number, after=False), "next": _beside(db, number, after=True)}
        has_tokens = tokens_place(db, row) is not None
    try:
        record = parsed(index.line(file, Place(start, at, length)))
    except RecordFormatError as error:
        raise EOFError(f"{file} has changed: {error}") from error
    return {
        **record,
        "key": key,
        "row": row,
        "question": question_of(record),
        "mates": mates,
        **around,
        "has_tokens": has_tokens,
        "gold": record.get("gold", gold),
        "verdict": said_by_verifier(record),
        "notes": [],
    }


def tokens_place(db: sqlite3.Connection, row: Row) -> tuple[Any, ...] | None:
    """File and place of the line with the tokens of an episode, if they were kept."""
    if row["split"] != "train":
        return None
    found: tuple[Any, ...] | None = db.execute(
        "SELECT f.name, t.start, t.at, t.length FROM tokens t JOIN files f ON f.id = t.file"
        " WHERE t.step = ? AND t.grp = ? AND t.member = ? ORDER BY f.rank != ? LIMIT 1",
        (row["step"], row["group"], row["member"], read_key(row["key"])[3]),
    ).fetchone()
    return found


def _mates(db: sqlite3.Connection, row: Row) -> list[dict[str, Any]]:
    found = db.execute(
        "SELECT e.split, e.step, e.line, f.rank, e.member, e.kept, e.correct, e.reward FROM episodes e"
        " JOIN files f ON f.id = e.file WHERE e.split = ? AND e.step = ? AND e.round = ? AND e.grp = ?"
        f" ORDER BY {PLACE} LIMIT 1000",
        (row["split"], row["step"], row["round"], row["group"]),
    ).fetchall()
    return [
        {
            "key": key_of(*where),
            "member": member,
            "kept": None if kept is None else bool(kept),
            "correct": bool(correct),
            "reward": reward,
        }
        for *where, member, kept, correct, reward in found
    ]


def _beside(db: sqlite3.Connection, number: int, *, after: bool) -> str | None:
    """The key of the episode before or after one, of the same split."""
    split, *place = db.execute(f"SELECT {PLACE} FROM episodes e WHERE e.id = ?", (number,)).fetchone()
    order = PLACE if after else ", ".join(f"{one.strip()} DESC" for one in PLACE.split(","))
    found = db.execute(
        "SELECT e.split, e.step, e.line, f.rank FROM episodes e JOIN files f ON f.id = e.file WHERE e.split = ?"
        f" AND (e.step, e.round, e.grp, e.member, e.file, e.line) {'>' if after else '<'} (?, ?, ?, ?, ?, ?)"
        f" ORDER BY {order} LIMIT 1",
        (split, *place),
    ).fetchone()
    return None if found is None else key_of(*found)


def said_by_verifier(record: Mapping[str, Any]) -> dict[str, str] | None:
    """Why the answer was graded as it was: ``reason`` and ``method`` of the last turn's ``info["verdict"]``."""
    turns = record.get("steps")
    last = turns[-1] if isinstance(turns, list) and turns else None
    info = last.get("info") if isinstance(last, dict) else None
    verdict = info.get("verdict") if isinstance(info, dict) else None
    if not isinstance(verdict, dict) or not isinstance(verdict.get("reason"), str):
        return None  # no answer was graded, or an environment of another kind says something of its own there
    method = verdict.get("method")
    return {"reason": verdict["reason"], "method": method if isinstance(method, str) else ""}
