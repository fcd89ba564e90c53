"""``Library``: finds the runs below the given folders, and gives each a short name and an index."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.given_path import check_given
from rstar2_env.core.run_folder.inside import inside
from rstar2_env.core.run_folder.layout import EPISODES, FORMAT, RUN_FILE, TOKENS, VERSION
from rstar2_env.view.index import RunIndex

_DEPTH = 5
_MOST_FOLDERS = 20_000
_SKIPPED = re.compile(rf"\..*|checkpoint-\d+|{EPISODES}|{TOKENS}|best|final|node_modules|__pycache__")
_MOST_OPEN = 24
"""Maximum number of open indexes."""
_IDENTITY_BYTES = 1 << 20


@dataclass(slots=True)
class ViewedRun:
    """A run that the viewer has found.

    Attributes:
        name: Short name, unique in the library; the value of ``run`` in the page's addresses.
        path: Folder of the run, or the single file of an evaluation.
        kind: ``training``, ``sft``, ``evaluation`` or ``pipeline``.
        parent: Name of the pipeline that contains the run; ``None`` if there is none.
    """

    name: str
    path: Path
    kind: str
    parent: str | None = None


class Library:
    """All runs below a list of paths.

    Args:
        roots: Run folders, folders that contain run folders, and single files of evaluations.
        cache: Folder of indexes [default: in the user's cache folder].

    Raises:
        ConfigurationError: A path does not exist, or is not a folder or the file of an evaluation.
    """

    def __init__(self, roots: Iterable[str | os.PathLike[str]], cache: Path | None = None) -> None:
        self.roots = [Path(os.path.abspath(root)) for root in roots]
        self._cache = cache
        self._lock = threading.RLock()
        self._runs: dict[str, ViewedRun] = {}
        self._names: dict[Path, str] = {}
        self._open: dict[str, RunIndex] = {}
        for root in self.roots:
            check_root(root)
        self.scan()

    def scan(self) -> bool:
        """Search for runs again; return whether the list of runs changed."""
        found: dict[Path, str] = {}
        for root in self.roots:
            for path, kind in runs_below(root):
                found.setdefault(path, kind)
        with self._lock:
            before = {name: run.kind for name, run in self._runs.items()}
            runs: dict[str, ViewedRun] = {}
            for path, kind in sorted(found.items()):
                name = self._names.get(path) or self._name(path)
                self._names[path] = name
                runs[name] = ViewedRun(name, path, kind)
            for run in runs.values():
                above = [
                    other for other in runs.values() if other.kind == "pipeline" and other.path in run.path.parents
                ]
                run.parent = max(above, key=lambda other: len(other.path.parts)).name if above else None
            for name in self._open.keys() - runs.keys():
                self._open.pop(name).close()
            self._runs = runs
            return before != {name: run.kind for name, run in runs.items()}

    @property
    def runs(self) -> list[ViewedRun]:
        """The runs found by the last ``scan``, sorted by path."""
        with self._lock:
            return list(self._runs.values())

    def run(self, name: str) -> ViewedRun:
        """Return a run by its short name.

        Raises:
            KeyError: There is no such run.
        """
        with self._lock:
            return self._runs[name]

    def index(self, name: str) -> RunIndex:
        """Return the index of a run, opened if necessary.

        Raises:
            KeyError: There is no such run.
        """
        with self._lock:
            run = self._runs[name]
            index = self._open.pop(name, None)
            if index is None:
                index = RunIndex(run.path, self._cache)
            self._open[name] = index  # reinsert: least recently used indexes are closed first
            while len(self._open) > _MOST_OPEN:
                self._open.pop(next(iter(self._open))).close()
            return index

    def close(self) -> None:
        """Close all open indexes."""
        with self._lock:
            while self._open:
                self._open.popitem()[1].close()

    def _name(self, path: Path) -> str:
        root = next((root for root in self.roots if root == path or root in path.parents), path)
        relative = path.relative_to(root) if path != root else Path(path.name)
        base = re.sub(r"[^a-z0-9_.]+", "-", str(relative).removesuffix(".jsonl").lower()).strip("-.") or "run"
        taken, name, number = set(self._names.values()), base, 2
        while name in taken:
            name, number = f"{base}-{number}", number + 1
        return name


def no_runs(roots: Iterable[Path]) -> str:
    """Return the error message for paths that contain no runs."""
    where = ", ".join(map(str, roots))
    return (
        f"There are no runs in {where}: none of its folders contains a run.json. Give the --out folder of "
        "`rstar2 train`, `sft` or `eval`."
    )


def check_root(root: Path) -> None:
    """Raise an error if a path cannot contain a run.

    Raises:
        ConfigurationError: The path does not exist, or is a file without the suffix ``.jsonl``.
    """
    check_given(root, "give the folder of a run, a folder that contains runs, or a file of episodes")
    if root.is_file() and root.suffix != ".jsonl":
        raise ConfigurationError(
            f"{root} is not a run: expected the folder of a run (which contains {RUN_FILE}), a folder "
            "that contains run folders, or the .jsonl file of an evaluation."
        )


def runs_below(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield each run in and below a folder, with its kind; if ``root`` is a file, yield it as an evaluation.

    Folders of weights, folders of episodes and hidden folders are skipped. The scan descends into a run only if the
    run is a pipeline or ``root`` itself.
    """
    if root.is_file():
        yield root, "evaluation"
        return
    waiting, seen = [(root, 0)], 0
    while waiting and seen < _MOST_FOLDERS:
        folder, depth = waiting.pop(0)
        seen += 1
        kind = kind_of(folder)
        if kind:
            yield folder, kind
            if kind != "pipeline" and folder != root:
                continue
        if depth == _DEPTH:
            continue
        try:
            inside = sorted(
                Path(entry.path)
                for entry in os.scandir(folder)
                if entry.is_dir(follow_symlinks=False) and not _SKIPPED.fullmatch(entry.name)
            )
        except OSError:
            continue
        waiting += [(child, depth + 1) for child in inside]


def kind_of(folder: Path) -> str | None:
    """Return the kind of run in a folder; ``None`` if the folder is not a run that this version can read."""
    try:
        if not inside(folder, folder / RUN_FILE).is_file():
            return None
        with (folder / RUN_FILE).open("rb") as file:
            identity: Any = json.loads(file.read(_IDENTITY_BYTES))
    except (ConfigurationError, OSError, ValueError, RecursionError):
        return None
    if not isinstance(identity, dict) or identity.get("format") != FORMAT:
        return None
    version = identity.get("version")
    return str(identity.get("kind", "")) if isinstance(version, int) and version <= VERSION else None
