"""What ``rstar2 view --text`` prints: runs, episodes of one, or one episode."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from rich.console import RenderableType

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.view.answers import Answers
from rstar2_env.view.export.write import no_runs
from rstar2_env.view.following import Follower
from rstar2_env.view.library import Library
from rstar2_env.view.queries.episodes import MOST_ROWS
from rstar2_env.view.queries.rows import Row
from rstar2_env.view.terminal.episodes import conversation, episode_table
from rstar2_env.view.terminal.harmless import shown
from rstar2_env.view.terminal.overview import run_list, run_overview

_READ_S = 3600.0


def text_view(
    roots: Iterable[str | os.PathLike[str]],
    *,
    episodes: int | None = None,
    asked: Mapping[str, str] | None = None,
    key: str | None = None,
    cache: Path | None = None,
    told: Callable[[int, int], object] = lambda done, total: None,
) -> list[RenderableType]:
    """What to print.

    Args:
        roots: Folders of runs, or with runs below them, and single files of evaluations.
        episodes: List so many episodes of the run.
        asked: Filters and order of that list, as of the table of episodes.
        key: Show this episode of the run.
        cache: Folder of indexes; by default the user's.
        told: Told how far the runs are read, as by ``Follower.read_all``.

    Raises:
        ConfigurationError: There is no run, more than one where one is meant, no such episode, or a filter is wrong.
    """
    library = Library(roots, cache)
    try:
        runs = library.runs
        if not runs:
            raise ConfigurationError(no_runs(library.roots))
        follower = Follower(library)
        answers = Answers(follower)
        follower.read_all(_READ_S, told)
        for row in answers.runs()["runs"]:
            if Path(row["path"]).is_file() and not sum(row["episodes"].values()):
                why = " ".join(row["notes"])
                raise ConfigurationError(
                    f"{row['path']} holds no episode, so it is not the file of an evaluation. {why}".rstrip()
                )
        if key is None and episodes is None and not asked:
            parts: list[RenderableType] = [run_list(answers.runs()["runs"])] if len(runs) > 1 else []
            for run in runs if len(runs) <= 3 else ():
                parts.append(run_overview(answers.run(run.name), answers.metrics(run.name)))
            return parts
        if len(runs) > 1:
            raise ConfigurationError(f"There are {len(runs)} runs below that: name one of {_some(runs)}.")
        name = runs[0].name
        if key is not None:
            try:
                return [conversation(answers.episode(name, key), heading=f"{key} of {name}")]
            except KeyError:
                raise ConfigurationError(f"{runs[0].path} has no episode {key!r}: --episodes lists them.") from None
            except (EOFError, OSError) as error:
                raise ConfigurationError(
                    f"{runs[0].path} changed while episode {key!r} was read ({error}). Ask for it again."
                ) from error
        rows, total = _listed(answers, name, asked or {}, 50 if episodes is None else episodes)
        notes = [shown(f"Note: {note}", "yellow") for note in follower.peek(name).notes]
        return [*notes, episode_table(rows, total)]
    finally:
        library.close()


def _listed(answers: Answers, name: str, asked: Mapping[str, str], most: int) -> tuple[list[Row], int]:
    """So many rows of the table of episodes, page by page, and how many there are."""
    rows: list[Row] = []
    while True:
        limit = min(max(most - len(rows), 1), MOST_ROWS)
        page = answers.episodes(name, {**asked, "offset": str(len(rows)), "limit": str(limit)})
        rows += page["rows"]
        if len(rows) >= min(most, page["total"]) or not page["rows"]:
            return rows[:most], page["total"]


def _some(runs: Iterable[object]) -> str:
    paths = [str(getattr(run, "path", run)) for run in runs]
    return ", ".join(paths[:5]) + (", …" if len(paths) > 5 else "")
