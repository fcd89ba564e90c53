"""Rows of episodes: what a table shows of each, and the key by which one is named."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.view.queries.kept import KEPT

QUESTION = 120
"""Characters of a question in a row."""
PLACE = "e.split, e.step, e.round, e.grp, e.member, e.file, e.line"
"""The order in which episodes are listed unless another is asked for."""
FROM = "episodes e JOIN files f ON f.id = e.file JOIN problems p ON p.id = e.problem"
_COLUMNS = (
    "e.id, e.split, e.step, e.line, f.rank, e.grp, e.member, e.round, e.kept, e.reason, e.advantage, e.reward,"
    " e.correct, e.end, e.turns, e.tokens, e.calls, e.errors, e.statuses, e.injected, p.name, p.task, e.source,"
    " p.source, p.difficulty, e.seconds, e.answer, p.question, e.version"
)
_KEY = re.compile(r"(train|eval)-(\d{1,12})-(\d{1,12})(?:-rank(\d{1,6}))?")

Row = dict[str, Any]


def key_of(split: str, step: int, line: int, rank: int) -> str:
    """The name of an episode: its split, its step, the number of its line from 0, and the process if not the first."""
    return f"{split}-{step}-{line}" + (f"-rank{rank}" if rank else "")


def read_key(key: str) -> tuple[str, int, int, int]:
    """Split, step, line and process of a key.

    Raises:
        ConfigurationError: It is none.
    """
    found = _KEY.fullmatch(key)
    if found is None:
        raise ConfigurationError(f"{key[:80]!r} is no key of an episode: expected SPLIT-STEP-LINE, such as train-3-17.")
    return found[1], int(found[2]), int(found[3]), int(found[4] or 0)


def rows_of(db: sqlite3.Connection, ids: Sequence[int]) -> list[Row]:
    """The rows of some episodes, in the order of their ids as given."""
    heads = heads_of(db)
    found: dict[int, Row] = {}
    for begin in range(0, len(ids), 500):
        part = ids[begin : begin + 500]
        marks = ",".join("?" * len(part))
        for values in db.execute(f"SELECT {_COLUMNS} FROM {FROM} WHERE e.id IN ({marks})", part):
            found[values[0]] = _row(values, heads)
    return [found[one] for one in ids if one in found]


def heads_of(db: sqlite3.Connection) -> Mapping[str, int]:
    """How many characters the questions of each task begin with alike: instructions, which tell no two apart."""
    file = db.execute("PRAGMA database_list").fetchone()[2]
    found: Mapping[str, int] = KEPT.find((file, version_of(db), "heads"), lambda: _heads(db))
    return found


def _heads(db: sqlite3.Connection) -> dict[str, int]:
    heads = {}
    for task, least, most in db.execute(
        "SELECT task, min(question), max(question) FROM problems WHERE question != '' GROUP BY task"
    ):
        # What the first and the last of a sorted list begin with, all between them do.
        alike = next((at for at, (one, other) in enumerate(zip(least, most, strict=False)) if one != other), 0)
        common = least[:alike]
        # Whole lines and sentences only, so that what is left does not begin in the middle of one.
        heads[task] = max(common.rfind("\n") + 1, common.rfind(". ") + 2 if ". " in common else 0)
    return heads


def short_question(question: str, task: str, heads: Mapping[str, int], longest: int = QUESTION) -> str:
    """What a row shows of a question: its beginning, after what all of its task begin with."""
    return question[heads.get(task, 0) :][:longest]


def version_of(db: sqlite3.Connection) -> int:
    """The version of what an index holds."""
    found = db.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()
    return int(found[0]) if found else 0


def _row(values: Sequence[Any], heads: Mapping[str, int]) -> Row:
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
        "statuses": counts_in(statuses),
        "injected": counts_in(injected),
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


def counts_in(text: str | None) -> dict[str, int]:
    """Counts by name as the index keeps them."""
    found: dict[str, int] = json.loads(text) if text else {}
    return found


def added(counts: Iterable[tuple[Mapping[str, int], int]]) -> dict[str, int]:
    """The sum of counts by name, each taken a number of times; the most frequent first."""
    total: dict[str, int] = {}
    for one, times in counts:
        for name, count in one.items():
            total[name] = total.get(name, 0) + count * times
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def id_of(db: sqlite3.Connection, key: str) -> int:
    """The number of an episode in the index.

    Raises:
        ConfigurationError: The key is none.
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
