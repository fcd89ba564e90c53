"""``Shelved``: the options with which a stage locates its data sets and pins their revisions in a lock file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rstar2_env.core.files.json_lines import write_json
from rstar2_env.problems.prepare import Lock, Shelf

from .base import Work
from .plan import CONFIG

LOCK = "lock"
LOCKED: Mapping[str, str] = {LOCK: CONFIG}
"""Maps the input ``lock`` to its kind, so that a lock file is looked up in the same folders as a file of options. The
stage's digest does not cover the lock file: the first load adds values to it, and these must not cause the stage to run
again."""
SOURCES = "sources.json"
"""The file in a stage's folder that records loaded sources, in the format of a lock file."""


@dataclass(frozen=True, kw_only=True)
class Shelved:
    """The options that locate a stage's data sets.

    Attributes:
        lock: The lock file, which names the revision and the checksum of every source; each load is compared with it,
            and the first load fills in unknown values. ``None`` disables the comparison.
        hub_folder: A folder with copies of the Hub's data sets; ``None`` for the cache of the Hub's libraries.
        download: Whether to download missing data sets.
    """

    lock: str | None = None
    hub_folder: str | None = None
    download: bool = False

    @contextmanager
    def shelf(self, work: Work) -> Iterator[Shelf]:
        """Yield a loader of data sets; at the end, add missing revisions and checksums to the lock file.

        Args:
            work: The context of the stage.
        """
        lock = Lock(None if self.lock is None else Path(self.lock))
        before = lock.record()
        yield Shelf(lock, self.hub_folder, self.download, work.say, work.find)
        write_json(work.folder / SOURCES, lock.record())
        if self.lock is not None and lock.record() != before and not lock.write():
            work.say(f"The lock file {self.lock} cannot be written; its new content is in {work.folder / SOURCES}.")
