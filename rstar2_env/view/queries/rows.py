"""Rows of the table of episodes, and the keys that identify episodes."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.view.queries.result_cache import CACHE

QUESTION = 120
"""Maximum number of characters of a question in a row."""
PLACE = "e.split, e.step, e.round, e.grp, e.member, e.file, e.line"
"""Default sort order of episodes."""
FROM = "episodes e JOIN files f ON f.id = e.file JOIN problems p ON p.id = e.problem"
_COLUMNS = (
    "e.id, e.split, e.step, e.line, f.rank, e.grp, e.member, e.round, e.kept, e.reason, e.advantage, e.reward,"
    " e.correct, e.end, e.turns, e.tokens, e.calls, e.errors, e.statuses, e.injected, p.name, p.task, e.source,"
    " p.source, p.difficulty, e.seconds, e.answer, p.question, e.version"
)
_KEY = re.compile(r"(train|eval)-(\d{1,12})-(\d{1,12})(?:-rank(\d{1,6}))?")

EpisodeRow = dict[str, Any]


def key_of(split: str, step: int, line: int, rank: int) -> str:
    """Return the key of an episode: split, step, line number from 0, and the rank unless it is 0."""
    return f"{split}-{step}-{line}" + (f"-rank{rank}" if rank else "")


def read_key(key: str) -> tuple[str, int, int, int]:
    """Parse a key into split, step, line and rank.

    Raises:
        ConfigurationError: The key is invalid.
    """
    found = _KEY.fullmatch(key)
    if found is None:
        raise ConfigurationError(
            f"{key[:80]!r} is not the key of an episode: expected SPLIT-STEP-LINE, such as train-3-17."
        )
    return found[1], int(found[2]), int(found[3]), int(found[4] or 0)


def rows_of(db: sqlite3.Connection, ids: Sequence[int]) -> list[EpisodeRow]:
    """Return the rows of episodes, in the order of the given ids."""
    heads = common_prefixes(db)
    found: dict[int, EpisodeRow] = {}
    for begin in range(0, len(ids), 500):
        part = ids[begin : begin + 500]
        marks = ",".join("?" * len(part))
        for values in db.execute(f"SELECT {_COLUMNS} FROM {FROM} WHERE e.id IN ({marks})", part):
            found[values[0]] = _row(values, heads)
    return [found[id_] for id_ in ids if id_ in found]


def common_prefixes(db: sqlite3.Connection) -> Mapping[str, int]:
    """Return the length of the common prefix of the questions of each task, such as shared instructions."""
    file = db.execute("PRAGMA database_list").fetchone()[2]
    found: Mapping[str, int] = CACHE.find((file, version_of(db), "heads"), lambda: _heads(db))
    return found


def _heads(db: sqlite3.Connection) -> dict[str, int]:
    heads = {}
    for task, least, most in db.execute(
        "SELECT task, min(question), max(question) FROM problems WHERE question != '' GROUP BY task"
    ):
        # The common prefix of the first and last string in sorted order is common to all strings.
        length = next((at for at, (first, last) in enumerate(zip(least, most, strict=False)) if first != last), 0)
        common = least[:length]
        # Cut whole lines and sentences only, so that the rest does not start in the middle of one.
        heads[task] = max(common.rfind("\n") + 1, common.rfind(". ") + 2 if ". " in common else 0)
    return heads


def short_question(question: str, task: str, heads: Mapping[str, int], longest: int = QUESTION) -> str:
    """Return the beginning of a question after the common prefix of its task."""
    return question[heads.get(task, 0) :][:longest]


def version_of(db: sqlite3.Connection) -> int:
    """Return the version of the content of an index."""
    found = db.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()
    return int(found[0]) if found else 0


def _row(values: Sequence[Any], heads: Mapping[str, int]) -> EpisodeRow:
    (_, split, step, line, rank, group, member, round_, kept, reason, advantage, reward, correct, end) = values[:14]
    turns, tokens, calls, errors, statuses, injected, problem, task, source = values[14:23]
    problem_source, difficulty, seconds, answer, question, version = values[23:]
    return {
        "key": key_of(split, step, line, rank),
        "split": split,
        "step": step,
        "group": group,
        "member": member,
        "round": round_,
        "kept": None if kept is None else bool(kept),
        "reason": reason,
        "advantage": advantage,
        "reward": reward,
        "correct": bool(correct),
        "end": end,
        "turns": turns,
        "policy_tokens": tokens,
        "calls": calls,
        "errors": errors,
        "statuses": parse_counts(statuses),
        "injected": parse_counts(injected),
        "problem_id": problem,
        "task": task,
        "source": source,
        "problem_source": problem_source,
        "difficulty": difficulty,
        "seconds": seconds,
        "answer": answer,
        "question": short_question(question, task, heads),
        "version": version,
    }


def parse_counts(text: str | None) -> dict[str, int]:
    """Parse counts by name from the index."""
    found: dict[str, int] = json.loads(text) if text else {}
    return found


def sum_counts(counts: Iterable[tuple[Mapping[str, int], int]]) -> dict[str, int]:
    """Sum counts by name, each with a factor; the most frequent name comes first."""
    total: dict[str, int] = {}
    for by_name, times in counts:
        for name, count in by_name.items():
            total[name] = total.get(name, 0) + count * times
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def id_of(db: sqlite3.Connection, key: str) -> int:
    """Return the id of an episode in the index.

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
