"""Rows of the table of episodes, and the keys that identify episodes."""

from __future__ import annotations

import json
import re
import sqlite3
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder.layout import episode_key
from rstar2_env.view.index import RunIndex
from rstar2_env.view.index.schema import version_of
from rstar2_env.view.queries.filters import FIELDS
from rstar2_env.view.queries.result_cache import CACHE

QUESTION = 120
"""Maximum length of a question in a row, in characters."""
WITHIN_STEP = "e.round, e.grp, e.member, e.file, e.line"
"""SQL columns that sort the episodes of a step by round, group and member."""
PLACE = f"e.split, e.step, {WITHIN_STEP}"
"""SQL columns that sort episodes by split, by step, and within a step by ``WITHIN_STEP``."""
NEWEST = f"e.split DESC, e.step DESC, {WITHIN_STEP}"
"""SQL of the default order of lists of episodes: training before held-out episodes, the newest step first."""
FROM = "episodes e JOIN files f ON f.id = e.file JOIN problems p ON p.id = e.problem"
_KEY = re.compile(r"(train|eval)-(\d{1,12})-(\d{1,12})(?:-rank(\d{1,6}))?")
_ENDS = re.compile(r"\n|[.:!?]\s")

EpisodeRow = dict[str, Any]


def cached_ids(index: RunIndex, db: sqlite3.Connection, statement: str, values: Sequence[Any]) -> array[int]:
    """Return the ids that an SQL query selects, in the query's order; cached until the index changes."""
    return CACHE.find(
        (index.file, version_of(db), statement, tuple(values)),
        lambda: array("q", (number for (number,) in db.execute(statement, values))),
    )


def neighbour_of(
    db: sqlite3.Connection, select: str, columns: str, place: Sequence[Any], *, after: bool
) -> tuple[Any, ...] | None:
    """Return values of the next or previous row in the same split, in a given sort order; ``None`` if there is none.

    Args:
        db: Connection to the index.
        select: Columns to return, as SQL.
        columns: Columns to sort by, as SQL; the first is ``e.split``.
        place: Values of these columns in the current row.
        after: Whether to return the next row instead of the previous one.
    """
    sign, direction = (">", "ASC") if after else ("<", "DESC")
    names = columns.split(", ")
    found: tuple[Any, ...] | None = db.execute(
        f"SELECT {select} FROM episodes e JOIN files f ON f.id = e.file WHERE e.split = ?"
        f" AND ({', '.join(names[1:])}) {sign} ({', '.join('?' * len(names[1:]))})"
        f" ORDER BY {', '.join(f'{name} {direction}' for name in names)} LIMIT 1",
        tuple(place),
    ).fetchone()
    return found


def read_key(key: str) -> tuple[str, int, int, int]:
    """Parse an episode's key, ``SPLIT-STEP-LINE`` or ``SPLIT-STEP-LINE-rankN``; return split, step, line and rank.

    The rank is the number of the process that wrote the episode; it is 0 if the key has no rank (``train-3-17``).

    Raises:
        ConfigurationError: The key is invalid.
    """
    found = _KEY.fullmatch(key)
    if found is None:
        raise ConfigurationError(
            f"{key[:80]!r} is not the name of an episode: expected SPLIT-STEP-LINE, such as train-3-17."
        )
    return found[1], int(found[2]), int(found[3]), int(found[4] or 0)


def rows_of(db: sqlite3.Connection, ids: Sequence[int]) -> list[EpisodeRow]:
    """Return the rows of episodes, in the order of the given ids."""
    heads = common_prefixes(db)
    found: dict[int, EpisodeRow] = {}
    for begin in range(0, len(ids), 500):
        part = ids[begin : begin + 500]
        marks = ",".join("?" * len(part))
        for id_, line, rank, *values in db.execute(
            f"SELECT e.id, e.line, f.rank, {', '.join(FIELDS.values())} FROM {FROM} WHERE e.id IN ({marks})", part
        ):
            row = dict(zip(FIELDS, values, strict=True))
            found[id_] = _row(episode_key(row["split"], row["step"], line, rank), row, heads)
    return [found[id_] for id_ in ids if id_ in found]


def common_prefixes(db: sqlite3.Connection) -> Mapping[str, int]:
    """Return, for each task, the length of the prefix that its questions share, such as common instructions."""
    file = db.execute("PRAGMA database_list").fetchone()[2]
    return CACHE.find((file, version_of(db), "heads"), lambda: _heads(db))


def _heads(db: sqlite3.Connection) -> dict[str, int]:
    ends = db.execute("SELECT task, min(question), max(question) FROM problems WHERE question != '' GROUP BY task")
    by_task = {task: (least, most) for task, least, most in ends}
    if not by_task:
        return {}
    # Also the beginning that the questions of all tasks share: a single question would share all of its text.
    of_all = _shared(min(least for least, _ in by_task.values()), max(most for _, most in by_task.values()))
    return {task: max(of_all, _shared(least, most)) for task, (least, most) in by_task.items()}


def _shared(least: str, most: str) -> int:
    """Return the length of the prefix that all strings share, given the first and the last of them in sorted order.

    Only whole lines, sentences and headings such as "Problem: " count, so that the rest of the question begins with a
    word.
    """
    length = next((at for at, (first, last) in enumerate(zip(least, most, strict=False)) if first != last), 0)
    return max((found.end() for found in _ENDS.finditer(least[:length])), default=0)


def short_question(question: str, task: str, heads: Mapping[str, int], longest: int = QUESTION) -> str:
    """Return the start of a question, without the prefix that its task's questions share (length in ``heads``)."""
    return question[heads.get(task, 0) :][:longest]


def _row(key: str, row: EpisodeRow, heads: Mapping[str, int]) -> EpisodeRow:
    """Convert the values of ``FIELDS`` in the index to the row of an episode; ``heads`` is from ``common_prefixes``."""
    return {
        "key": key,
        **row,
        "kept": None if row["kept"] is None else bool(row["kept"]),
        "correct": bool(row["correct"]),
        "statuses": parse_counts(row["statuses"]),
        "injected": parse_counts(row["injected"]),
        "question": short_question(row["question"], row["task"], heads),
    }


def parse_counts(text: str | None) -> dict[str, int]:
    """Parse counts by name from their JSON in the index."""
    found: dict[str, int] = json.loads(text or "{}")
    return found


def sum_counts(counts: Iterable[tuple[Mapping[str, int], int]]) -> dict[str, int]:
    """Add up counts by name, each multiplied by a factor; the most frequent name comes first."""
    total: Counter[str] = Counter()
    for by_name, times in counts:
        for name, count in by_name.items():
            total[name] += count * times
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def id_of(db: sqlite3.Connection, key: str) -> int:
    """Return the index's id for the episode with the given key.

    Raises:
        ConfigurationError: The key is invalid.
        KeyError: There is no such episode.
    """
    found = db.execute(
        "SELECT e.id FROM files f JOIN episodes e ON e.file = f.id"
        " WHERE f.what = 'episodes' AND f.split = ? AND f.step = ? AND e.line = ? AND f.rank = ?",
        read_key(key),
    ).fetchone()
    if found is None:
        raise KeyError(key)
    return int(found[0])
