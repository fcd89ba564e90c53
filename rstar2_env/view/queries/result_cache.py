"""``ResultCache``: a cache, of limited size, for expensive query results."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")


class ResultCache:
    """A cache of query results that drops the least recently used ones; thread-safe.

    Args:
        most: Maximum number of results.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._results: OrderedDict[Hashable, Any] = OrderedDict()
        self._made: dict[Hashable, threading.Event] = {}
        self._lock = threading.Lock()

    def find(self, key: Hashable, make: Callable[[], ResultT]) -> ResultT:
        """Return a cached result, or compute it and cache it; other threads that need it meanwhile wait for it.

        Args:
            key: Key of the result, which includes the version of the data.
            make: Function that computes the result.
        """
        while True:
            with self._lock:
                if key in self._results:
                    self._results.move_to_end(key)
                    found: ResultT = self._results[key]
                    return found
                begun = self._made.get(key)
                if begun is None:
                    done = self._made[key] = threading.Event()
                    break
            begun.wait()
        try:
            made = make()
            with self._lock:
                self._results[key] = made
                while len(self._results) > self._most:
                    self._results.popitem(last=False)
        finally:
            with self._lock:
                del self._made[key]
            done.set()
        return made


CACHE = ResultCache(16)
"""Cache of sorted id lists of episodes, groups and problems, and of comparisons, by query."""
