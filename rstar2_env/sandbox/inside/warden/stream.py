"""What a child writes: the bytes that are kept, and the count of those that are not."""

from __future__ import annotations

import array
import fcntl
import os
import termios


class Stream:
    """Standard output or error of a child: what was kept, and how much was not."""

    __slots__ = ("descriptor", "kept", "left_out")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.kept = bytearray()
        self.left_out = 0

    def add(self, data: bytes, limit: int) -> bool:
        """Keep ``data`` up to the limit; returns whether the limit was exceeded."""
        room = max(0, limit - len(self.kept))
        self.kept += data[:room]
        self.left_out += max(0, len(data) - room)
        return self.left_out > 0

    def take(self, limit: int) -> None:
        """Keep what is in the pipe at this moment, and nothing that is written later."""
        if self.descriptor < 0:
            return
        waiting = array.array("i", [0])
        fcntl.ioctl(self.descriptor, termios.FIONREAD, waiting)
        if waiting[0]:
            self.add(os.read(self.descriptor, waiting[0]), limit)
