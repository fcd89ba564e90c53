"""Writes an export: reads the runs completely, collects the data, and writes the HTML file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from rstar2_env.core.files.outputs import check_file, replacing
from rstar2_env.view.answers import read_runs
from rstar2_env.view.built_page import FOLDER
from rstar2_env.view.export.packed import pack
from rstar2_env.view.export.page import empty_page, page_of
from rstar2_env.view.library import check_root


def write_export(
    roots: Iterable[str | os.PathLike[str]],
    out: Path,
    *,
    episodes: int = 200,
    params: Mapping[str, str] | None = None,
    cache: Path | None = None,
    on_progress: Callable[[int, int], object] = lambda done, total: None,
    static: Path | None = None,
    overwrite: bool = False,
) -> str:
    """Write runs as one HTML file that works without a server.

    Args:
        roots: Run folders, folders that contain runs, and single files of evaluations.
        out: Output file; its folder is created.
        episodes: Maximum number of episodes per run; the page states how the episodes were chosen.
        params: Filters of the episodes (``queries.filters``).
        cache: Folder of indexes [default: in the user's cache folder].
        on_progress: Progress callback, as for ``Follower.read_all``.
        static: Folder of the built page [default: the output of ``make view``].
        overwrite: Replace an existing file.

    Returns:
        If data was omitted, a note that states which data the page contains; else empty.

    Raises:
        ConfigurationError: The page has not been built, the file exists already or cannot be written, a path is not a
            run, or there are no runs. All that can be checked early is checked before the runs are read.
    """
    roots = list(roots)
    check_file(out, option="report", overwrite=overwrite, inputs=roots, page=True)
    for root in roots:
        check_root(Path(root).absolute())
    empty = empty_page(static or FOLDER)
    with read_runs(roots, cache, on_progress) as answers:
        data = pack(answers, episodes=episodes, params=params)
    with replacing(out) as partial:
        partial.write_text(page_of(data, empty), "utf-8")
    return str(data["note"])
