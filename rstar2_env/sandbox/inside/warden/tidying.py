"""``Tidying``: removes working folders in small steps, so that a large folder does not delay other calls.

Covered: folders on the file system of the machine. Not covered: mounts of a child, which end with its namespace.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterator

from ..tidy import removal
from .loop import EventLoop

_AT_ONCE = 64
"""Number of removal steps per round of the event loop: enough for the folder of a usual call."""


class Tidying:
    """Removes folders in small steps between the rounds of an event loop.

    The more folders wait for their removal, the more steps run between two rounds.

    Args:
        loop: The event loop of the warden.
    """

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._left: deque[Iterator[None]] = deque()

    def remove(self, path: str) -> None:
        """Remove a folder: the first steps immediately, later steps between rounds of the event loop."""
        work = removal(path)
        if _has_more(work, _AT_ONCE):
            self._left.append(work)
            if len(self._left) == 1:
                self._loop.call_at(time.monotonic(), self._turn)

    def _turn(self) -> None:
        if not _has_more(self._left[0], _AT_ONCE * len(self._left)):
            self._left.popleft()
        if self._left:
            self._loop.call_at(time.monotonic(), self._turn)


def _has_more(work: Iterator[None], steps: int) -> bool:
    return sum(1 for _ in itertools.islice(work, steps)) == steps
