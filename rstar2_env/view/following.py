"""``Follower``: keeps the indexes of runs up to date in a background thread, and reports which runs have changed.

Files are polled, because runs may be written by processes on other machines, whose writes cause no file-system
notifications on this machine. A run on display is polled every second, a run that has not changed for a while less
often.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.view.index import RunIndex
from rstar2_env.view.library import Library
from rstar2_env.view.queries import figures
from rstar2_env.view.queries.run_facts import RunFacts

SLICE_S = 0.5
"""Maximum seconds to spend on one run before the next run is read."""
_NEAR_S, _FAR_S = 1.0, 15.0
"""Seconds between two polls: of a run that is displayed or has changed recently; of any other run."""
_SCAN_S = 5.0
"""Minimum seconds between two searches for new runs."""
_LATELY_S = 60.0
"""For this many seconds after a request or a change, a run is polled often."""
_PUBLISH_S = 2.0
"""Minimum seconds between two reports of changes in a run whose index is still being filled."""


@dataclass(slots=True)
class FollowedRun:
    """Progress of reading and indexing a run.

    Attributes:
        facts: Reader of the run's small files: options, metrics, events.
        episodes: Number of indexed episodes of each split.
        read: Bytes of episodes that were read, and total bytes of episodes.
        searchable: Number of episodes in the full-text index, and total number of episodes.
        complete: Whether all episodes have been indexed.
        notes: Notes on unreadable content.
        change: Value of the follower's change counter when the run last changed.
    """

    facts: RunFacts
    episodes: dict[str, int] = field(default_factory=lambda: {"train": 0, "eval": 0})
    read: tuple[int, int] = (0, 1)
    searchable: tuple[int, int] = (0, 0)
    complete: bool = False
    notes: list[str] = field(default_factory=list)
    change: int = 0
    _state: Any = None
    _requested: float = 0.0
    _changed: float = 0.0
    _due: float = 0.0
    _published: float = 0.0


class Follower:
    """Keeps the indexes of all runs in a library up to date.

    Args:
        library: The library, which finds the runs.
    """

    def __init__(self, library: Library) -> None:
        self.library = library
        self._boot = secrets.token_hex(4)
        self._lock = threading.Lock()
        self._change, self._listed = 1, 1
        self._runs: dict[str, FollowedRun] = {}
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._scanned = time.monotonic()
        self._sync_runs()

    def start(self) -> None:
        """Start the background thread that updates the indexes."""
        self._thread = threading.Thread(target=self._follow, name="rstar2-view-follower", daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        """Whether ``close`` was called."""
        return self._ended.is_set()

    def close(self) -> None:
        """Stop the background thread that updates the indexes."""
        self._ended.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def followed(self, name: str) -> FollowedRun:
        """Return the indexing progress of a run, and poll the run often from now on.

        Raises:
            KeyError: There is no such run.
        """
        with self._lock:
            run = self._runs[name]
        now = time.monotonic()
        if now - run._requested > _NEAR_S:
            run._requested = now
            run._due = min(run._due, now + _NEAR_S)
            self._wake.set()
        return run

    def peek(self, name: str) -> FollowedRun:
        """Return the indexing progress of a run, without changing how often the run is polled.

        Raises:
            KeyError: There is no such run.
        """
        with self._lock:
            return self._runs[name]

    def changes(self, since: str) -> tuple[str, list[str], bool]:
        """Return a new cursor, the runs that changed after the cursor ``since``, and whether the list of runs changed.

        A cursor is a text that stands for a point in time. If ``since`` is empty or from another viewer, all runs count
        as changed.
        """
        boot, _, number = since.partition("-")
        with self._lock:
            cursor = f"{self._boot}-{self._change}"
            if boot != self._boot or not number.isdigit():
                return cursor, list(self._runs), True
            changed = [name for name, run in self._runs.items() if run.change > int(number)]
            return cursor, changed, self._listed > int(number)

    def read_all(self, seconds: float, on_progress: Callable[[int, int], object] = lambda done, total: None) -> bool:
        """Read all runs in the calling thread, up to a time limit; return whether all were read completely.

        Args:
            seconds: Time limit in seconds.
            on_progress: Callback with the megabytes of episodes that were read, and the megabytes in total. A
                byte that is not yet in the full-text index counts half.
        """
        until = time.monotonic() + seconds
        for name in list(self._runs):
            while not self._update(name, min(until - time.monotonic(), SLICE_S)):
                on_progress(*self._megabytes())
                if time.monotonic() > until:
                    return False
                if not self.library.index(name).fills:
                    time.sleep(0.05)  # another viewer fills the index
        return True

    def _megabytes(self) -> tuple[int, int]:
        done = total = 0.0
        for run in list(self._runs.values()):
            searchable, episodes = run.searchable
            done += run.read[0] * (1 + searchable / max(1, episodes)) / 2
            total += run.read[1]
        return int(done / 1e6), max(1, round(total / 1e6))

    def _follow(self) -> None:
        while not self._ended.is_set():
            now = time.monotonic()
            self._scan(now)
            with self._lock:
                due = [name for name, run in self._runs.items() if run._due <= now]
                due.sort(key=lambda name: -self._runs[name]._requested)
            if due:
                self._update(due[0], SLICE_S)
            else:
                with self._lock:
                    rest = min((run._due for run in self._runs.values()), default=now + _NEAR_S) - now
                self._wake.wait(max(min(rest, _NEAR_S), 0.02))
                self._wake.clear()

    def _scan(self, now: float) -> None:
        if now < self._scanned + _SCAN_S:
            return
        try:
            changed = self.library.scan()
        except OSError:
            changed = False
        took = time.monotonic() - now
        self._scanned = time.monotonic() + 20 * took
        if changed:
            self._sync_runs()

    def _sync_runs(self) -> None:
        with self._lock:
            self._change += 1
            self._listed = self._change
            names = {run.name: run.path for run in self.library.runs}
            for name in self._runs.keys() - names.keys():
                del self._runs[name]
            for name, path in names.items():
                if name not in self._runs:
                    self._runs[name] = FollowedRun(RunFacts(path), change=self._change)

    def _update(self, name: str, timeout_s: float) -> bool:
        begun = time.monotonic()
        try:
            run = self._runs[name]
            index = self.library.index(name)
            complete = index.refresh(timeout_s)
            state = (index.version, run.facts.signature(), complete)
            if state != run._state:
                filled = complete and index.fills and not run.complete
                shown = run._state is not None
                try:
                    if filled and shown:
                        figures.warm_cache(index)  # first, or clients that learn of the end would compute the same
                finally:
                    self._publish(run, index, complete)
                if filled and not shown:
                    figures.warm_cache(index)
                run._state, run._changed = state, begun
        except KeyError:
            return True  # the run was removed
        except Exception as error:  # a failure in one run must not stop the others
            run.notes = [f"The index of the run could not be updated: {error!r}. The viewer will try again."]
            run._due = time.monotonic() + _FAR_S
            return True
        now = time.monotonic()
        active = now - max(run._requested, run._changed) < _LATELY_S
        if complete or not index.fills:
            run._due = now + max(_NEAR_S if active or not complete else _FAR_S, 10 * (now - begun))
        else:
            run._due = now
        return complete

    def _publish(self, run: FollowedRun, index: RunIndex, complete: bool) -> None:
        read, size, searchable, known = index.progress()
        counts = dict(index.query("SELECT split, count(*) FROM episodes GROUP BY split"))
        notes = index.notes() + run.facts.notes()
        now = time.monotonic()
        with self._lock:
            # An index changes constantly while it is being filled: limit how often clients are notified.
            if complete or now - run._published > _PUBLISH_S:
                self._change += 1
                run.change, run._published = self._change, now
            run.read, run.searchable, run.complete = (read, size), (searchable, known), complete
            run.episodes = {"train": 0, "eval": 0, **counts}
            run.notes = notes
