"""``CallerLink``: the warden's connection to its caller, which sends and receives frames without blocking.

The stream is a socket on descriptor 0, or, in a container, a pipe for reading on 0 and a pipe for writing on 1.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Hashable
from functools import partial
from typing import Any

from .. import wire
from ..send_queue import SendQueue

_READ = 1 << 18


class CallerLink:
    """The stream between the warden and its caller.

    Args:
        incoming: Descriptor to read from.
        outgoing: Descriptor to write to; it must differ from ``incoming``, since both are polled separately.
    """

    def __init__(self, incoming: int, outgoing: int) -> None:
        self.incoming = incoming
        self.outgoing = outgoing
        self._frames = wire.FrameReader()
        self._out = SendQueue(partial(os.write, outgoing))

    @classmethod
    def take_standard_streams(cls) -> CallerLink:
        """Create a link from descriptors 0 and 1, and replace these with the null device."""
        both = stat.S_ISSOCK(os.fstat(0).st_mode)
        link = cls(os.dup(0), os.dup(0 if both else 1))
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1):
            os.dup2(null, descriptor)
        os.close(null)
        return link

    @property
    def backlog(self) -> bool:
        """Whether output is waiting to be written."""
        return bool(self._out)

    def do_not_block(self) -> None:
        """Make reading and writing non-blocking."""
        os.set_blocking(self.incoming, False)
        os.set_blocking(self.outgoing, False)

    def first(self) -> dict[str, Any] | None:
        """Wait for the first frame, and return its header; ``None`` if the caller has ended."""
        while True:
            frames = self.receive()
            if frames is None or frames:
                return frames[0].header if frames else None

    def receive(self) -> list[wire.Frame] | None:
        """Return the frames received so far; ``None`` if the caller has ended."""
        try:
            data = os.read(self.incoming, _READ)
        except BlockingIOError:
            return []
        except ConnectionError:
            return None
        return self._frames.feed(data) if data else None

    def send(self, header: dict[str, Any], blobs: tuple[bytes, ...] = (), key: Hashable | None = None) -> bool:
        """Send a frame, and buffer the part that cannot be written now; return false if the caller has ended.

        Args:
            header: Header of the frame.
            blobs: Binary data of the frame.
            key: See ``SendQueue.append``.
        """
        waits = bool(self._out)
        self._out.append(wire.pack(header, blobs), key)
        return waits or self.flush()

    def flush(self) -> bool:
        """Write as much of the buffer as possible; return false if the caller has ended."""
        try:
            self._out.flush()
        except ConnectionError:
            return False
        return True
