"""All that an index holds, in a form that does not depend on the order in which it was filled."""

from __future__ import annotations

from typing import Any

from rstar2_env.view.index import RunIndex
from rstar2_env.view.index.episode_columns import EpisodeFacts
from rstar2_env.view.queries.episodes import list_episodes


def dump(index: RunIndex, *searches: str) -> dict[str, Any]:
    """Every episode with its place and its problem, every place of tokens, what searches find, and the notes."""
    columns = ", ".join(f"e.{name}" for name in EpisodeFacts._fields)
    return {
        "episodes": sorted(
            index.query(
                f"SELECT f.name, e.line, e.start, e.at, e.length, p.name, p.question, p.task, {columns} FROM episodes e"
                " JOIN files f ON f.id = e.file JOIN problems p ON p.id = e.problem"
            ),
            key=str,
        ),
        "tokens": sorted(
            index.query(
                "SELECT f.name, t.line, t.start, t.at, t.length, t.step, t.grp, t.member FROM tokens t"
                " JOIN files f ON f.id = t.file"
            )
        ),
        "found": {
            q: sorted(row["key"] for row in list_episodes(index, {"q": q, "limit": "1000"})["rows"]) for q in searches
        },
        "notes": index.notes(),
    }
