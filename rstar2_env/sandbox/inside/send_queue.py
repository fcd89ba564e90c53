"""Data that waits to be written to a stream that does not block."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class SendQueue:
    """Data to write, in order. Not thread-safe.

    Args:
        write: Writes the beginning of its argument without blocking, and returns the number of written bytes.
    """

    def __init__(self, write: Callable[[memoryview], int]) -> None:
        self._write = write
        self._left: deque[memoryview] = deque()

    def __len__(self) -> int:
        """Number of pieces of data that are not yet written."""
        return len(self._left)

    def append(self, data: bytes) -> None:
        """Add data at the end."""
        self._left.append(memoryview(data))

    def flush(self) -> None:
        """Write as much as possible.

        Raises:
            OSError: The stream is closed.
        """
        while self._left:
            try:
                sent = self._write(self._left[0])
            except BlockingIOError:
                return
            if sent < len(self._left[0]):
                self._left[0] = self._left[0][sent:]
            else:
                self._left.popleft()
