"""``SendQueue``: frames (messages) that wait to be written to a non-blocking stream; long frames do not delay others.

A frame of more than ``PART_BYTES`` bytes is sent in parts, which ``wire.FrameReader`` joins. Short frames are sent
before the next part, and long frames take turns. Frames with the same key keep their order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator

from . import wire

PART_BYTES = 1 << 17
"""Size in bytes of the longest frame that is sent in one piece, and of the parts of a longer frame."""
_AT_ONCE = 1 << 20
"""Number of bytes after which ``flush`` returns; without this limit, it might write forever to a fast receiver."""


class SendQueue:
    """A queue of frames to write to a stream. Not thread-safe.

    Args:
        write: Writes the beginning of its argument without blocking, and returns the number of written bytes.
    """

    def __init__(self, write: Callable[[memoryview], int]) -> None:
        self._write = write
        self._next: deque[memoryview] = deque()
        self._lanes: dict[Hashable, deque[Iterator[bytes]]] = {}
        self._numbers = 0

    def __bool__(self) -> bool:
        """Whether the queue has bytes that are not yet written."""
        return bool(self._next or self._lanes)

    def append(self, frame: bytes, key: Hashable | None = None) -> None:
        """Add a frame to the queue.

        Args:
            frame: Bytes of the frame, as ``wire.pack`` returns them.
            key: The frame is written after all earlier frames with an equal key; ``None`` if the order does not matter.
        """
        is_long = len(frame) > PART_BYTES
        if not is_long and (key is None or key not in self._lanes):
            self._next.append(memoryview(frame))
            return
        self._numbers += 1
        parts = wire.split(frame, self._numbers, PART_BYTES) if is_long else iter((frame,))
        self._lanes.setdefault(object() if key is None else key, deque()).append(parts)

    def flush(self) -> None:
        """Write as many queued bytes as possible without blocking, up to a limit.

        Raises:
            OSError: The stream is closed.
        """
        room = _AT_ONCE
        while room > 0 and (self._next or self._take_part()):
            try:
                sent = self._write(self._next[0])
            except BlockingIOError:
                return
            room -= sent
            if sent < len(self._next[0]):
                self._next[0] = self._next[0][sent:]
            else:
                self._next.popleft()

    def _take_part(self) -> bool:
        """Queue the next part of the long frame whose turn it is; return false if there is none."""
        while self._lanes:
            key = next(iter(self._lanes))
            lane = self._lanes.pop(key)
            part = next(lane[0], None)
            if part is None:
                lane.popleft()
            if lane:
                self._lanes[key] = lane  # at the end
            if part is not None:
                self._next.append(memoryview(part))
                return True
        return False
