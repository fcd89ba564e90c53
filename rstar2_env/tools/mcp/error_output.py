"""``ErrorOutput``: captures the last lines that a local MCP server writes to its standard error."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading

_KEPT = 4096
_CHUNK = 1 << 16
_CHUNKS = 16
"""Number of chunks of ``_CHUNK`` bytes that fill the largest pipe of an unprivileged user (1 MiB)."""


class ErrorOutput:
    """A pipe for the standard error of a program; an event loop reads the pipe, so that the program never blocks.

    Args:
        loop: The event loop that runs in the calling thread.

    Attributes:
        file: The write end of the pipe, for the program.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._last = b""
        self._reading, writing = os.pipe()
        os.set_blocking(self._reading, False)
        self.file = os.fdopen(writing, "w")
        loop.add_reader(self._reading, self._read)

    def end(self) -> str:
        """Return the last lines of the program's error output; safe to call from any thread."""
        self._read(_CHUNKS)
        return self._last.decode(errors="replace").strip()

    def close(self) -> None:
        """Read the rest of the output and close the pipe; call this in the thread of the event loop."""
        self._read(_CHUNKS)
        self._loop.remove_reader(self._reading)
        with self._lock:
            self.file.close()
            os.close(self._reading)
            self._reading = -1

    def _read(self, chunks: int = 1) -> None:
        """Read at most ``chunks`` chunks, so that a program that never stops writing cannot block the event loop."""
        with self._lock, contextlib.suppress(BlockingIOError):
            for _ in range(chunks if self._reading >= 0 else 0):
                self._last = (self._last + os.read(self._reading, _CHUNK))[-_KEPT:]
