"""Keeps the indexes of a library up to date, in a thread of its own, and tells which runs have changed.

Files are looked at again and again, since runs are written by other processes, also of other machines, whose writes no
file system announces. A run that somebody looks at is looked at every second, one that ended long ago seldom.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rstar2_env.view.library import Library
from rstar2_env.view.queries import figures
from rstar2_env.view.queries.run_facts import RunFacts

SLICE_S = 0.5
"""Seconds that one run is read for before others have their turn."""
_NEAR_S, _FAR_S, _SCAN_S = 1.0, 15.0, 5.0
_LATELY_S = 60.0
_TOLD_S = 2.0


@dataclass(slots=True)
class Followed:
    """How far a run has been read.

    Attributes:
        facts: Its small files.
        episodes: Episodes of each split that the index knows.
        read: Bytes of episodes read, and there.
        searchable: Episodes whose words can be searched, and all.
        complete: Whether everything that is there has been taken over.
        notes: What could not be read.
        change: Number of its last change.
    """

    facts: RunFacts
    episodes: dict[str, int] = field(default_factory=lambda: {"train": 0, "eval": 0})
    read: tuple[int, int] = (0, 1)
    searchable: tuple[int, int] = (0, 0)
    complete: bool = False
    notes: list[str] = field(default_factory=list)
    change: int = 0
    _state: Any = None
    _asked: float = 0.0
    _changed: float = 0.0
    _due: float = 0.0
    _told: float = 0.0


class Follower:
    """Follows the runs of a library.

    Args:
        library: The runs.
    """

    def __init__(self, library: Library) -> None:
        self.library = library
        self._boot = secrets.token_hex(4)
        self._lock = threading.Lock()
        self._change, self._listed = 1, 1
        self._runs: dict[str, Followed] = {}
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._scanned = time.monotonic()
        self._meet()

    def start(self) -> None:
        """Begin to follow."""
        self._thread = threading.Thread(target=self._follow, name="rstar2-view-follower", daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        """Whether it was closed."""
        return self._ended.is_set()

    def close(self) -> None:
        """End it."""
        self._ended.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def followed(self, name: str) -> Followed:
        """How far a run has been read; from now on it is looked at often.

        Raises:
            KeyError: There is no such run.
        """
        with self._lock:
            run = self._runs[name]
        now = time.monotonic()
        if now - run._asked > _NEAR_S:
            run._asked = now
            run._due = min(run._due, now + _NEAR_S)
            self._wake.set()
        return run

    def peek(self, name: str) -> Followed:
        """The same, without looking at the run more often.

        Raises:
            KeyError: There is no such run.
        """
        with self._lock:
            return self._runs[name]

    def changes(self, since: str) -> tuple[str, list[str], bool]:
        """The cursor now, the runs that changed since an earlier one, and whether the list of runs did.

        A cursor of another viewer, or none, means that everything may have changed.
        """
        boot, _, number = since.partition("-")
        with self._lock:
            cursor = f"{self._boot}-{self._change}"
            if boot != self._boot or not number.isdigit():
                return cursor, list(self._runs), True
            changed = [name for name, run in self._runs.items() if run.change > int(number)]
            return cursor, changed, self._listed > int(number)

    def read_all(self, seconds: float, told: Callable[[int, int], object] = lambda done, total: None) -> bool:
        """Read the runs here and now, for a while; returns whether all of them have been read to their ends.

        Args:
            seconds: Most seconds to read for.
            told: Called now and then with the megabytes of episodes that were read, and those that are there. Bytes
                whose words cannot be searched yet count half.
        """
        until = time.monotonic() + seconds
        for name in list(self._runs):
            while not self._look(name, min(until - time.monotonic(), SLICE_S)):
                told(*self._megabytes())
                if time.monotonic() > until:
                    return False
                if not self.library.index(name).fills:
                    time.sleep(0.05)  # another viewer reads it
        return True

    def _megabytes(self) -> tuple[int, int]:
        done = there = 0.0
        for run in list(self._runs.values()):
            searchable, episodes = run.searchable
            done += run.read[0] * (1 + searchable / max(1, episodes)) / 2
            there += run.read[1]
        return int(done / 1e6), max(1, round(there / 1e6))

    def _follow(self) -> None:
        while not self._ended.is_set():
            now = time.monotonic()
            self._scan(now)
            with self._lock:
                due = [name for name, run in self._runs.items() if run._due <= now]
                due.sort(key=lambda name: -self._runs[name]._asked)
            for name in due[:1] or ():
                self._look(name, SLICE_S)
            if not due:
                with self._lock:
                    rest = min((run._due for run in self._runs.values()), default=now + _NEAR_S) - now
                self._wake.wait(max(min(rest, _NEAR_S), 0.02))
                self._wake.clear()

    def _scan(self, now: float) -> None:
        if now < self._scanned + _SCAN_S:
            return
        try:
            others = self.library.scan()
        except OSError:
            others = False
        took = time.monotonic() - now
        self._scanned = time.monotonic() + 20 * took
        if others:
            self._meet()

    def _meet(self) -> None:
        with self._lock:
            self._change += 1
            self._listed = self._change
            names = {run.name: run.path for run in self.library.runs}
            for name in self._runs.keys() - names.keys():
                del self._runs[name]
            for name, path in names.items():
                if name not in self._runs:
                    self._runs[name] = Followed(RunFacts(path), change=self._change)

    def _look(self, name: str, budget_s: float) -> bool:
        begun = time.monotonic()
        try:
            run = self._runs[name]
            index = self.library.index(name)
            complete = index.refresh(budget_s)
            state = (index.version, run.facts.signature(), complete)
            if state != run._state:
                filled = complete and index.fills and not run.complete
                self._note(run, index.progress(), dict(_by_split(index)), complete, index.notes() + run.facts.notes)
                if filled:
                    figures.warm(index)
                run._state, run._changed = state, begun
        except KeyError:
            return True  # it is gone
        except Exception as error:  # whatever one run's files hold, the others are followed on
            run.notes = [f"The index cannot be kept up to date: {error!r}. It is tried again."]
            run._due = time.monotonic() + _FAR_S
            return True
        now = time.monotonic()
        lately = now - max(run._asked, run._changed) < _LATELY_S
        if complete or not index.fills:
            run._due = now + max(_NEAR_S if lately or not complete else _FAR_S, 10 * (now - begun))
        else:
            run._due = now
        return complete

    def _note(
        self,
        run: Followed,
        progress: tuple[int, int, int, int],
        episodes: dict[str, int],
        complete: bool,
        notes: list[str],
    ) -> None:
        now = time.monotonic()
        with self._lock:
            # While it is filled, an index changes all the time: those who look are told now and then.
            if complete or now - run._told > _TOLD_S:
                self._change += 1
                run.change, run._told = self._change, now
            run.read, run.searchable, run.complete = progress[:2], progress[2:], complete
            run.episodes = {"train": 0, "eval": 0, **episodes}
            run.notes = notes


def _by_split(index: Any) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = index.query("SELECT split, count(*) FROM episodes GROUP BY split")
    return found
