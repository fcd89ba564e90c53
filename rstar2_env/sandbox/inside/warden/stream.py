"""``Stream``: the output of a child process."""

from __future__ import annotations

import array
import fcntl
import os
import termios


class Stream:
    """Standard output or standard error of a child process: the stored bytes, and the number of dropped bytes."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.kept = bytearray()
        self.left_out = 0

    def add(self, data: bytes, limit: int) -> bool:
        """Store ``data`` up to the limit, and drop the rest; return whether the limit was exceeded."""
        room = max(0, limit - len(self.kept))
        self.kept += data[:room]
        self.left_out += max(0, len(data) - room)
        return self.left_out > 0

    def take(self, limit: int) -> None:
        """Read the bytes that are in the pipe now, and store them up to ``limit`` bytes in total."""
        if self.descriptor < 0:
            return
        waiting = array.array("i", [0])
        fcntl.ioctl(self.descriptor, termios.FIONREAD, waiting)
        if waiting[0]:
            self.add(os.read(self.descriptor, waiting[0]), limit)
