"""The warden's side of its caller: frames in, frames out, never blocking."""

from __future__ import annotations

import socket
from collections import deque
from typing import Any

from . import wire

_READ = 1 << 18


class CallerLink:
    """A socket to the caller."""

    def __init__(self, caller: socket.socket) -> None:
        self.socket = caller
        self._frames = wire.FrameReader()
        self._out: deque[memoryview] = deque()

    @property
    def backlog(self) -> bool:
        """Whether something waits to be written."""
        return bool(self._out)

    def first(self) -> dict[str, Any] | None:
        """Wait for the first frame; ``None`` when the caller is gone."""
        while True:
            frames = self.receive()
            if frames is None or frames:
                return frames[0].header if frames else None

    def receive(self) -> list[wire.Frame] | None:
        """The frames that have come; ``None`` when the caller is gone."""
        try:
            data = self.socket.recv(_READ)
        except BlockingIOError:
            return []
        except ConnectionError:
            return None
        return self._frames.feed(data) if data else None

    def say(self, header: dict[str, Any], blobs: tuple[bytes, ...] = ()) -> bool:
        """Send a frame, now or later; false when the caller is gone."""
        self._out.append(memoryview(wire.pack(header, blobs)))
        return len(self._out) > 1 or self.flush()

    def flush(self) -> bool:
        """Write what can be written; false when the caller is gone."""
        while self._out:
            try:
                sent = self.socket.send(self._out[0])
            except BlockingIOError:
                return True
            except ConnectionError:
                return False
            if sent == len(self._out[0]):
                self._out.popleft()
            else:
                self._out[0] = self._out[0][sent:]
        return True
