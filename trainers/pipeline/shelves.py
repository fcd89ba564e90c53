"""``Shelved``: the options that stages share which load data sets by a lock file, and the shelf that they load from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rstar2_env.core.files.lines import write_json
from rstar2_env.problems.prepare import Lock, Shelf

from .base import Work
from .plan import CONFIG

LOCK = "lock"
LOCKED: Mapping[str, str] = {LOCK: CONFIG}
"""The lock is found as configurations are, and its content does not count: the first load fills it in, which must not
make the stage run again."""
SOURCES = "sources.json"
"""What a stage loaded, in its folder, in the form of a lock file."""


@dataclass(frozen=True, kw_only=True)
class Shelved:
    """Where a stage's data sets are.

    Attributes:
        lock: The lock file, which names the revision and the checksum of every source; the first load fills in what it
            does not know. ``None`` compares with nothing.
        hub_folder: A folder of copies of data sets of the Hub; ``None`` for the cache of the Hub's libraries.
        download: Download what is missing.
    """

    lock: str | None = None
    hub_folder: str | None = None
    download: bool = False

    @contextmanager
    def shelf(self, work: Work) -> Iterator[Shelf]:
        """The shelf; what the lock file did not know is written into it at the end.

        Args:
            work: What the stage was given.
        """
        lock = Lock(None if self.lock is None else Path(self.lock))
        before = lock.record()
        yield Shelf(lock, self.hub_folder, self.download, work.say, work.find)
        write_json(work.folder / SOURCES, lock.record())
        if self.lock is not None and lock.record() != before and not lock.write():
            work.say(f"{self.lock} cannot be written; what would be in it is in {work.folder / SOURCES}.")
