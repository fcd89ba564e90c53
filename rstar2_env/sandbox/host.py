"""Where a warden runs, as a connection sees it: something to start, to speak with over one stream, and to end.

The ``local`` provider's is a process on this machine (``process``).
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Protocol


class Host(Protocol):
    """One warden's place. Used once, in its connection's thread; ``abandon`` aside.

    Attributes:
        name: For messages ("the local sandbox").
        stall_s: Seconds without a sign of life after which the warden is given up.
        warden_pid: Process number of the warden on this machine, or 0.
        scratch: The warden's folder on this machine, or empty.
    """

    name: str
    stall_s: float
    warden_pid: int
    scratch: str

    def start(self) -> socket.socket:
        """Start the warden and return the stream to it, which the caller closes.

        Raises:
            Exception: It cannot be started; the text says why.
        """
        ...

    def options(self) -> dict[str, Any]:
        """The first message to the warden."""
        ...

    def decode(self, data: bytes) -> bytes:
        """What the warden said, of what came over the stream."""
        ...

    def end(self, patience: float) -> str:
        """End the warden and all below it after the stream was shut, and remove what it left.

        Args:
            patience: Seconds that it may take to end by itself.

        Returns:
            Its last words, for an error message, or nothing.
        """
        ...

    def abandon(self) -> None:
        """In a forked child of the caller: close descriptors and nothing else."""
        ...


MakeHost = Callable[[], Host]
