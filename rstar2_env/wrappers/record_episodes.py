"""``RecordEpisodes``: writes every finished episode as one line of JSON to a file, which can be compressed and resumed.

Covered: files truncated by a crash, files that a later run continues, and files that several environments of one
process share. Not covered: episodes that were abandoned before their end; several processes that write one file (use
one file each).
"""

from __future__ import annotations

import gzip
import json
import os
import threading
import weakref
from pathlib import Path
from typing import Any

import gymnasium as gym

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.append_only import lines, members
from rstar2_env.core.files.full_disk import naming_full_disk
from rstar2_env.core.files.outputs import check_file
from rstar2_env.wrappers.base import StepReturn, TextEnv, TextWrapper
from rstar2_env.wrappers.registry import WRAPPERS


class RecordEpisodes(TextWrapper, gym.utils.RecordConstructorArgs):
    """Writes each episode to a file when it ends.

    A line is ``Episode.record()`` without ``group``, but with ``index`` (the episode's 0-based number in the file) and
    the last step's ``info``. A file whose name ends in ``.gz`` is compressed, with one gzip member per episode, so that
    a crash loses at most the episode that is being written.

    Args:
        env: A text environment.
        path: The file; its folder is created.
        resume: Whether to continue an existing file; a truncated last line is removed.
        overwrite: Whether to replace an existing file.
        shared: Whether to share the file with the other environments of this process that record into it with
            ``shared``; the first of them creates or resumes the file.

    Attributes:
        path: The file.
        count: Number of episodes in the file.
        played: Seed and problem id of each episode in the file, so that a resumed run can skip these episodes.

    Raises:
        ConfigurationError: The file exists and is not empty, and neither ``resume`` nor ``overwrite`` is set; or the
            file is damaged.
    """

    def __init__(
        self,
        env: TextEnv,
        path: str | os.PathLike[str],
        *,
        resume: bool = False,
        overwrite: bool = False,
        shared: bool = False,
    ) -> None:
        # The spec must be JSON-serializable, and an environment created from it must continue the same file.
        gym.utils.RecordConstructorArgs.__init__(self, path=str(path), resume=True, shared=shared)
        super().__init__(env)
        self.path = Path(path)
        self._file = _opened(self.path, resume, overwrite, shared)
        self._episode = Episode()

    @property
    def played(self) -> list[tuple[int | None, str]]:
        """Seed and problem id of every episode in the file."""
        return self._file.played

    @property
    def count(self) -> int:
        """Number of episodes in the file."""
        return len(self.played)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode; an unfinished episode is not recorded."""
        text, info = self.env.reset(seed=seed, options=options)
        task = self.env.spec.id if self.env.spec is not None else ""
        self._episode = Episode(seed=seed, task=task).begin(text, info)
        return text, info

    def step(self, action: str) -> StepReturn:
        """Play a turn; after the last turn, write the episode."""
        step = self.take(action)
        if self._episode.step(action, step):
            self._write(step[4])
        return step

    def _write(self, info: dict[str, Any]) -> None:
        record = self._episode.record()
        del record["group"]
        self._file.write({**record, "info": info})


class _File:
    """A file of episodes that several environments of a process may share."""

    def __init__(self, path: Path, *, resume: bool, overwrite: bool) -> None:
        self.path = path
        self.played: list[tuple[int | None, str]] = []
        self._lock = threading.Lock()
        check_file(path, option="path", resume=resume, overwrite=overwrite)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if resume and path.exists():
                self._resume()
            else:
                path.write_bytes(b"")
        except OSError as error:
            raise ConfigurationError(f"The file {path} cannot be written: {error.strerror or error}.") from error

    def write(self, record: dict[str, Any]) -> None:
        with self._lock:
            line = json.dumps({"index": len(self.played), **record}, ensure_ascii=False, default=str) + "\n"
            data = line.encode("utf-8", "backslashreplace")
            with naming_full_disk(self.path), self.path.open("ab") as file:
                file.write(gzip.compress(data, mtime=0) if self.path.suffix == ".gz" else data)
            self.played.append((record["seed"], record["problem_id"]))

    def _resume(self) -> None:
        data = self.path.read_bytes()
        kept = 0
        for line, end in members(data) if self.path.suffix == ".gz" else lines(data):
            try:
                record = json.loads(line)
                self.played.append((record["seed"], record["problem_id"]))
            except (ValueError, KeyError, TypeError) as error:
                raise ConfigurationError(
                    f"Line {len(self.played) + 1} of {self.path} is not an episode ({error!r}): choose another file."
                ) from error
            kept = end
        if kept < len(data):
            if not self.played:
                raise ConfigurationError(
                    f"The file {self.path} does not contain a complete episode: choose another file, or "
                    "pass overwrite=True."
                )
            with self.path.open("r+b") as file:
                file.truncate(kept)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle only the path; a copy continues the same file, so two processes must not write at the same time."""
        return _opened, (self.path, True, False, True)


_shared: weakref.WeakValueDictionary[Path, _File] = weakref.WeakValueDictionary()
_sharing = threading.Lock()


def _opened(path: Path, resume: bool, overwrite: bool, shared: bool) -> _File:
    if not shared:
        return _File(path, resume=resume, overwrite=overwrite)
    with _sharing:
        whole = path.absolute()
        file = _shared.get(whole)
        if file is None:
            file = _shared[whole] = _File(path, resume=resume, overwrite=overwrite)
        return file


def record_episodes(
    env: TextEnv,
    path: str | os.PathLike[str],
    *,
    resume: bool = False,
    overwrite: bool = False,
    shared: bool = True,
) -> RecordEpisodes:
    """Write every finished episode as a line of JSON.

    This is the wrapper ``record_episodes`` in a configuration: ``RecordEpisodes`` with ``shared=True`` by default,
    since the many environments of one configuration share the file.

    Args:
        env: A text environment.
        path: The file.
        resume: Continue an existing file.
        overwrite: Replace an existing file.
        shared: Share the file with the other environments of this process.
    """
    return RecordEpisodes(env, path, resume=resume, overwrite=overwrite, shared=shared)


def read_episodes(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the records in a file that ``RecordEpisodes`` wrote, without a truncated last line."""
    path = Path(path)
    data = path.read_bytes()
    return [json.loads(line) for line, _ in (members(data) if path.suffix == ".gz" else lines(data))]


WRAPPERS.register("record_episodes", record_episodes)
