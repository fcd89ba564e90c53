"""Writes an export: reads the runs to their ends, packs what there is room for, puts the page together."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.view.answers import Answers
from rstar2_env.view.built_page import FOLDER
from rstar2_env.view.export.packed import pack
from rstar2_env.view.export.page import empty_page, page_of
from rstar2_env.view.following import Follower
from rstar2_env.view.library import Library

_READ_S = 3600.0


def write_export(
    roots: Iterable[str | os.PathLike[str]],
    out: Path,
    *,
    episodes: int = 200,
    asked: Mapping[str, str] | None = None,
    cache: Path | None = None,
    told: Callable[[int, int], object] = lambda done, total: None,
    static: Path | None = None,
) -> str:
    """Write runs as one page.

    Args:
        roots: Folders of runs, or with runs below them, and single files of evaluations.
        out: The file; one that is there is replaced.
        episodes: Episodes of each run, at most; the page says which ones, and why.
        asked: A filter of the episodes, as of their table.
        cache: Folder of indexes; by default the user's.
        told: Told how far the runs are read, as by ``Follower.read_all``.
        static: Folder of the built page; by default the one that ``make view`` builds.

    Returns:
        What was left out, and why; empty where nothing was.

    Raises:
        ConfigurationError: The page has not been built, the file cannot be written, a path is no run, or there are
            none; what can be known first is told before the runs are read.
    """
    empty = empty_page(static or FOLDER)
    with _blaming(out):
        if out.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        beside = out.with_name(f".{out.name}.part")
        beside.touch()
    try:
        data = _read(roots, cache, told, episodes, asked or {})
        page = page_of(data, empty)
        with _blaming(out):
            beside.write_text(page, "utf-8")
            beside.replace(out)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
    return str(data["note"])


def _read(
    roots: Iterable[str | os.PathLike[str]],
    cache: Path | None,
    told: Callable[[int, int], object],
    episodes: int,
    asked: Mapping[str, str],
) -> dict[str, Any]:
    library = Library(roots, cache)
    try:
        if not library.runs:
            raise ConfigurationError(no_runs(library.roots))
        follower = Follower(library)
        follower.read_all(_READ_S, told)
        return pack(Answers(follower), episodes=episodes, asked=asked)
    finally:
        library.close()


@contextlib.contextmanager
def _blaming(out: Path) -> Iterator[None]:
    """Tells what the disk refuses as a mistake about the file that was named."""
    try:
        yield
    except OSError as error:
        raise ConfigurationError(
            f"{out} cannot be written: {error.strerror or error}. Name a file in a folder that is there, in which this "
            "user may write, on a disk with room."
        ) from error


def no_runs(roots: Iterable[Path]) -> str:
    """What to do where no run was found."""
    where = ", ".join(map(str, roots))
    return (
        f"There is no run in {where}: looked for folders with a run.json of rstar2-env in it, and below them. Name the "
        "--out of `rstar2 train`, `sft` or `eval`."
    )
