"""``Host``: the place where a warden runs. A connection starts the warden, uses one stream to it, and ends it.

The host of the ``local`` provider is a process on this machine (``local.process``).
"""

from __future__ import annotations

import abc
import socket
from collections.abc import Callable
from typing import Any


class Host(abc.ABC):
    """Place where one warden runs. A host is used once, only in the thread of its connection (except ``abandon``).

    Attributes:
        name: Name in messages ("The local sandbox").
        stall_timeout_s: Seconds without a response after which the warden is considered lost.
        warden_pid: Process id of the warden on this machine, or 0.
        scratch: Folder of the warden on this machine, or empty.
    """

    name: str
    stall_timeout_s: float
    warden_pid: int = 0
    scratch: str = ""

    @abc.abstractmethod
    def start(self) -> socket.socket:
        """Start the warden and return the stream to it; the caller closes the stream.

        Raises:
            Exception: The warden cannot be started; the message gives the reason.
        """

    @abc.abstractmethod
    def options(self) -> dict[str, Any]:
        """Return the warden's options; they are the first message to it."""

    def decode(self, data: bytes) -> bytes:
        """Extract the warden's bytes from the bytes of the stream; by default, all bytes are the warden's."""
        return data

    @abc.abstractmethod
    def end(self, patience: float) -> str:
        """End the warden and its processes after the stream was closed, and remove leftover files.

        Args:
            patience: Seconds to wait for it to end on its own.

        Returns:
            The last part of its error output, for an error message; may be empty.
        """

    def abandon(self) -> None:  # noqa: B027  # optional: a host without descriptors of its own has nothing to close
        """In a forked child of the caller: close descriptors other than the stream."""


MakeHost = Callable[[], Host]
