"""Writing of an export: reads the runs completely, packs the data and assembles the page."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.view.answers import read_runs
from rstar2_env.view.built_page import FOLDER
from rstar2_env.view.export.packed import pack
from rstar2_env.view.export.page import empty_page, page_of


def write_export(
    roots: Iterable[str | os.PathLike[str]],
    out: Path,
    *,
    episodes: int = 200,
    params: Mapping[str, str] | None = None,
    cache: Path | None = None,
    on_progress: Callable[[int, int], object] = lambda done, total: None,
    static: Path | None = None,
) -> str:
    """Write runs as one HTML file.

    Args:
        roots: Run folders, folders that contain runs, and single files of evaluations.
        out: Output file; an existing file is replaced.
        episodes: Maximum number of episodes per run; the page states which ones were chosen.
        params: Filter of the episodes, as for the table of episodes.
        cache: Folder of indexes [default: in the user's cache folder].
        on_progress: Progress callback, as for ``Follower.read_all``.
        static: Folder of the built page [default: the output of ``make view``].

    Returns:
        A sentence about what the page contains if data was omitted; else empty.

    Raises:
        ConfigurationError: The page has not been built, the file cannot be written, a path is not a run, or there are
            no runs. All that can be checked early is checked before the runs are read.
    """
    empty = empty_page(static or FOLDER)
    with _reported_write_errors(out):
        if out.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        partial = out.with_name(f".{out.name}.part")
        partial.touch()
    try:
        with read_runs(roots, cache, on_progress) as answers:
            data = pack(answers, episodes=episodes, params=params)
        page = page_of(data, empty)
        with _reported_write_errors(out):
            partial.write_text(page, "utf-8")
            partial.replace(out)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
    return str(data["note"])


@contextlib.contextmanager
def _reported_write_errors(out: Path) -> Iterator[None]:
    """Convert an ``OSError`` into a ``ConfigurationError`` that names the file."""
    try:
        yield
    except OSError as error:
        raise ConfigurationError(
            f"{out} cannot be written: {error.strerror or error}. Choose a file in an existing, writable folder, on a "
            "disk with free space."
        ) from error
