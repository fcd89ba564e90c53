"""``Host``: base class of the objects that start and end a warden (the process that supervises programs).

The provider ``local`` starts the warden as a process on this machine (``local.process``), ``docker`` in a container.
"""

from __future__ import annotations

import abc
import socket
from collections.abc import Callable
from typing import Any


class Host(abc.ABC):
    """Starts and ends one warden. A host is used once, only in the thread of its connection (except ``abandon``).

    Attributes:
        name: Name of the sandbox in messages ("The local sandbox").
        stall_timeout_s: Seconds without a response after which the warden is considered lost.
        warden_pid: Process id of the warden, or 0 if it does not run as a process on this machine.
        scratch: Folder of the warden's temporary files on this machine; empty if there is none.
    """

    name: str
    stall_timeout_s: float
    warden_pid: int = 0
    scratch: str = ""

    @abc.abstractmethod
    def start(self) -> socket.socket:
        """Start the warden, and return the stream to it; the caller closes the stream.

        Raises:
            Exception: The warden cannot be started; the message gives the reason.
        """

    @abc.abstractmethod
    def options(self) -> dict[str, Any]:
        """Return the warden's options, which are the first message to the warden."""

    def decode(self, data: bytes) -> bytes:
        """Extract the warden's output from the bytes of the stream; by default, the bytes are returned unchanged."""
        return data

    @abc.abstractmethod
    def end(self, patience: float) -> str:
        """End the warden and its processes after the stream was closed, and remove leftover files.

        Args:
            patience: Seconds to wait for the warden to end on its own.

        Returns:
            The last part of the warden's error output, for an error message; may be empty.
        """

    def abandon(self) -> None:  # noqa: B027  # optional: a host without descriptors of its own has nothing to close
        """In a forked child process, close the inherited copies of all descriptors except the stream."""


MakeHost = Callable[[], Host]
