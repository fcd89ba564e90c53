"""``Tidying``: working folders go a bit at a time, so that one which a program filled keeps no other call waiting.

Covered: folders on the file system of the machine. Not covered: what a child mounted, which ends with its namespace.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterator

from ..tidy import removal
from .loop import EventLoop

_AT_ONCE = 64
"""Steps of a removal in one round of the loop: what a usual call leaves is gone in the first."""


class Tidying:
    """Removes folders between the rounds of a loop; more at once the more there are.

    Args:
        loop: The warden's.
    """

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._left: deque[Iterator[None]] = deque()

    def remove(self, path: str) -> None:
        """Remove a folder and all in it, as far as possible."""
        work = removal(path)
        if _goes_on(work, _AT_ONCE):
            self._left.append(work)
            if len(self._left) == 1:
                self._loop.call_at(time.monotonic(), self._turn)

    def _turn(self) -> None:
        if not _goes_on(self._left[0], _AT_ONCE * len(self._left)):
            self._left.popleft()
        if self._left:
            self._loop.call_at(time.monotonic(), self._turn)


def _goes_on(work: Iterator[None], steps: int) -> bool:
    return sum(1 for _ in itertools.islice(work, steps)) == steps
