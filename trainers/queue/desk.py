"""``Desk``: which process plays which episode, and when: bookkeeping without clocks, messages or episodes.

One limit holds for all processes together, however many there are. Each may play its share of it. A process that has
room plays the oldest of its own episodes; once none of those waits, the oldest of the process that has the most
waiting. So nothing moves while its own process has room, and nobody idles while an episode waits. Not covered: which
server an episode goes to, which is its engine's.
"""

from __future__ import annotations

from collections import OrderedDict

Key = tuple[int, int]
"""A job: the process whose group it is of, and its number there."""


class Desk:
    """The queue of a round.

    Args:
        size: Number of processes.
        most: Largest number of episodes that one process may play at the same time.

    Attributes:
        limit: Largest number of episodes that all of them together may play; it may change at any time.
        ended: Episodes that were played and play no longer.
    """

    def __init__(self, size: int, most: int) -> None:
        self.limit = size * most
        self.ended = 0
        self._most = most
        self._waiting: list[OrderedDict[Key, None]] = [OrderedDict() for _ in range(size)]
        self._at: dict[Key, int] = {}
        self._playing = [0] * size
        self._present: set[int] = set()

    @property
    def playing(self) -> int:
        """Episodes that are being played."""
        return len(self._at)

    @property
    def waiting(self) -> int:
        """Episodes that wait."""
        return sum(map(len, self._waiting))

    def enter(self, rank: int) -> None:
        """A process can play from now on."""
        self._present.add(rank)

    def offer(self, key: Key) -> None:
        """A job waits to be played."""
        self._waiting[key[0]][key] = None

    def where(self, key: Key) -> int | None:
        """The process that plays a job; ``None`` if none does."""
        return self._at.get(key)

    def forget(self, key: Key) -> None:
        """A job has ended, or is wanted no longer."""
        self._waiting[key[0]].pop(key, None)
        rank = self._at.pop(key, None)
        if rank is not None:
            self._playing[rank] -= 1
            self.ended += 1

    def withdraw_all(self) -> list[Key]:
        """Let no job wait; return those that did."""
        keys = [key for queue in self._waiting for key in queue]
        for queue in self._waiting:
            queue.clear()
        return keys

    def assign(self) -> list[tuple[Key, int]]:
        """Give jobs to processes while there is room; return each with its process."""
        given = []
        while self.playing < self.limit and (found := self._next()) is not None:
            key, rank = found
            del self._waiting[key[0]][key]
            self._at[key] = rank
            self._playing[rank] += 1
            given.append(found)
        return given

    def _next(self) -> tuple[Key, int] | None:
        share = min(self._most, max(1, -(-self.limit // max(1, len(self._present)))))
        free = [rank for rank in self._present if self._playing[rank] < share]
        if not free:
            return None
        least = self._playing.__getitem__
        if own := [rank for rank in free if self._waiting[rank]]:
            rank = min(own, key=least)
            return next(iter(self._waiting[rank])), rank
        # Only those wait whose own process has no room.
        queue = max((self._waiting[rank] for rank in self._present), key=len)
        return (next(iter(queue)), min(free, key=least)) if queue else None
