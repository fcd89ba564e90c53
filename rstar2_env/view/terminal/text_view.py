"""Builds the output of ``rstar2 view --text``: runs, the episodes of one run, or one episode; as text or as JSON."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.view.answers import Answers, read_runs
from rstar2_env.view.queries.episodes import MOST_ROWS
from rstar2_env.view.queries.rows import EpisodeRow
from rstar2_env.view.terminal.episodes import conversation, episode_table
from rstar2_env.view.terminal.overview import run_list, run_overview
from rstar2_env.view.terminal.sanitize import safe_text

_MOST_OVERVIEWS = 3
"""Maximum number of runs in a list that is followed by an overview of each run."""


def read_content(
    roots: Iterable[str | os.PathLike[str]],
    *,
    episodes: int | None = None,
    params: Mapping[str, str] | None = None,
    key: str | None = None,
    cache: Path | None = None,
    on_progress: Callable[[int, int], object] = lambda done, total: None,
) -> dict[str, Any]:
    """Return the content to print, in the structure that ``--json`` writes.

    Args:
        roots: Run folders, folders that contain runs, and single files of evaluations.
        episodes: Maximum number of episodes to list.
        params: Filters and sort order of the episodes, as for the table of episodes.
        key: Key of the episode to show.
        cache: Folder of indexes [default: in the user's cache folder].
        on_progress: Progress callback, as for ``Follower.read_all``.

    Returns:
        Without ``episodes``, ``params`` and ``key``: ``runs``; and ``overviews``, dicts with ``run`` and ``metrics``.
        Otherwise, for the only run: its name (``run``), ``notes``, and either ``key`` and ``episode``, or ``total`` and
        ``episodes``.

    Raises:
        ConfigurationError: There are no runs, several runs although one is required, no such episode, or an invalid
            filter.
    """
    with read_runs(roots, cache, on_progress) as answers:
        runs = answers.runs()["runs"]
        for row in runs:
            if Path(row["path"]).is_file() and not sum(row["episodes"].values()):
                why = " ".join(row["notes"])
                raise ConfigurationError(
                    f"{row['path']} is not the file of an evaluation: it does not contain episodes. {why}".rstrip()
                )
        if key is None and episodes is None and not params:
            shown = [row["run"] for row in runs] if len(runs) <= _MOST_OVERVIEWS else []
            overviews = [{"run": answers.run(name), "metrics": answers.metrics(name)} for name in shown]
            return {"runs": runs, "overviews": overviews}
        if len(runs) > 1:
            paths = ", ".join([row["path"] for row in runs[:5]] + ["…"] * (len(runs) > 5))
            raise ConfigurationError(
                f"These folders contain {len(runs)} runs, and only one can be shown here: choose one of {paths}."
            )
        name, path = runs[0]["run"], runs[0]["path"]
        about = {"run": name, "notes": runs[0]["notes"]}
        if key is not None:
            try:
                return {**about, "key": key, "episode": answers.episode(name, key)}
            except KeyError:
                raise ConfigurationError(
                    f"{path} does not contain an episode {key!r}: --episodes lists its episodes."
                ) from None
            except (EOFError, OSError) as error:
                raise ConfigurationError(
                    f"{path} changed while the episode {key!r} was read ({error}): try again."
                ) from error
        rows, total = _listed(answers, name, params or {}, 50 if episodes is None else episodes)
        return {**about, "total": total, "episodes": rows}


def renderables(content: Mapping[str, Any]) -> list[RenderableType]:
    """Return the renderables that show the result of ``read_content``."""
    if "overviews" in content:
        parts: list[RenderableType] = [run_list(content["runs"])] if len(content["runs"]) > 1 else []
        return [*parts, *(run_overview(one["run"], one["metrics"]) for one in content["overviews"])]
    if "episode" in content:
        return [conversation(content["episode"], heading=f"{content['key']} of {content['run']}")]
    notes = [safe_text(f"Note: {note}", "yellow") for note in content["notes"]]
    return [*notes, episode_table(content["episodes"], content["total"])]


def _listed(answers: Answers, name: str, params: Mapping[str, str], most: int) -> tuple[list[EpisodeRow], int]:
    """Read at most ``most`` rows of the table of episodes, page by page; return them and the total number."""
    rows: list[EpisodeRow] = []
    while True:
        limit = min(max(most - len(rows), 1), MOST_ROWS)
        page = answers.episodes(name, {**params, "offset": str(len(rows)), "limit": str(limit)})
        rows += page["rows"]
        if len(rows) >= min(most, page["total"]) or not page["rows"]:
            return rows[:most], page["total"]
