"""``Host``: where a warden runs. A connection starts it, communicates with it over one stream, and ends it.

The host of the ``local`` provider is a process on this machine (``process``).
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Protocol


class Host(Protocol):
    """The place where one warden runs. Used once, and only in its connection's thread, except for ``abandon``.

    Attributes:
        name: For messages ("the local sandbox").
        stall_s: Seconds without a response after which the warden counts as lost.
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
            Exception: It cannot be started; the message says why.
        """
        ...

    def options(self) -> dict[str, Any]:
        """The first message to the warden."""
        ...

    def decode(self, data: bytes) -> bytes:
        """Extract what the warden sent from the bytes of the stream."""
        ...

    def end(self, patience: float) -> str:
        """End the warden and its processes after the stream was closed, and remove what it left behind.

        Args:
            patience: Seconds that it may take to end on its own.

        Returns:
            The end of its error output, for an error message; may be empty.
        """
        ...

    def abandon(self) -> None:
        """In a forked child of the caller: close descriptors and nothing else."""
        ...


MakeHost = Callable[[], Host]
