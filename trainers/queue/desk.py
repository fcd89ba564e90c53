"""``Desk``: decides which process plays which episode, and when. It does not play episodes or send messages.

One limit applies to all processes together, and each process may play its share of the limit. A process with room plays
the oldest of its own waiting episodes. If none of its episodes waits, the process plays the oldest episode of the
process with the most waiting episodes. So no episode moves while its own process has room, and no process is idle while
an episode waits. Not covered: the choice of a server, which the engine makes.
"""

from __future__ import annotations

from collections import OrderedDict

RequestKey = tuple[int, int]
"""Identifies an episode: the rank of the process that requested it, and the episode's number in that process."""


class Desk:
    """The queue of episodes in a round.

    Args:
        size: Number of processes.
        most: Maximum number of episodes that one process may play at the same time.

    Attributes:
        limit: Maximum number of episodes that all processes together may play; it may change at any time.
        ended: Number of episodes that were played and have ended.
    """

    def __init__(self, size: int, most: int) -> None:
        self.limit = size * most
        self.ended = 0
        self._most = most
        self._waiting: list[OrderedDict[RequestKey, None]] = [OrderedDict() for _ in range(size)]
        self._at: dict[RequestKey, int] = {}
        self._playing = [0] * size
        self._present: set[int] = set()

    @property
    def playing(self) -> int:
        """Number of episodes that are being played."""
        return len(self._at)

    @property
    def waiting(self) -> int:
        """Number of requested episodes that no process has started yet."""
        return sum(map(len, self._waiting))

    def enter(self, rank: int) -> None:
        """Record that a process can play episodes from now on."""
        self._present.add(rank)

    def offer(self, key: RequestKey) -> None:
        """Add an episode of a process to the queue."""
        self._waiting[key[0]][key] = None

    def where(self, key: RequestKey) -> int | None:
        """Return the process that plays an episode; ``None`` if the episode is not being played."""
        return self._at.get(key)

    def forget(self, key: RequestKey) -> None:
        """Remove an episode that has ended, or that is no longer needed."""
        self._waiting[key[0]].pop(key, None)
        rank = self._at.pop(key, None)
        if rank is not None:
            self._playing[rank] -= 1
            self.ended += 1

    def withdraw_all(self) -> list[RequestKey]:
        """Remove all waiting episodes and return them."""
        keys = [key for queue in self._waiting for key in queue]
        for queue in self._waiting:
            queue.clear()
        return keys

    def assign(self) -> list[tuple[RequestKey, int]]:
        """Assign episodes to processes while there is room; return each with its process."""
        given = []
        while self.playing < self.limit and (found := self._next()) is not None:
            key, rank = found
            del self._waiting[key[0]][key]
            self._at[key] = rank
            self._playing[rank] += 1
            given.append(found)
        return given

    def _next(self) -> tuple[RequestKey, int] | None:
        share = min(self._most, max(1, -(-self.limit // max(1, len(self._present)))))
        free = [rank for rank in self._present if self._playing[rank] < share]
        if not free:
            return None
        least = self._playing.__getitem__
        if own := [rank for rank in free if self._waiting[rank]]:
            rank = min(own, key=least)
            return next(iter(self._waiting[rank])), rank
        # Only processes without room have waiting episodes.
        queue = max((self._waiting[rank] for rank in self._present), key=len)
        return (next(iter(queue)), min(free, key=least)) if queue else None
