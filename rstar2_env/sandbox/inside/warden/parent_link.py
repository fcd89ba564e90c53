"""``ParentLink``: the warden's connection to one parent process, for orders, replies, and pings."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Sequence

from .. import orders

_CREDENTIALS = struct.Struct("iii")


class ParentLink:
    """A message socket to one parent process.

    Args:
        control: The warden's end of the socket.
    """

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.pid = 0
        """Process id of the parent, once the parent is ready; 0 if the kernel does not report it."""
        self._pinged_at: float | None = None
        control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)

    def wait(self, seconds: float) -> orders.OrderReply | None:
        """Wait for the first message from the parent process; return ``None`` if the process has ended.

        Raises:
            OSError: No message arrived within ``seconds``.
        """
        self.control.settimeout(seconds)
        return self.greet()

    def greet(self) -> orders.OrderReply | None:
        """Receive the parent's first message, and record the parent's process id; ``None`` if the parent has ended."""
        message, ancillary, _, _ = self.control.recvmsg(orders.MAX_BYTES, socket.CMSG_SPACE(_CREDENTIALS.size))
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                self.pid = _CREDENTIALS.unpack(data)[0]
        self.control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
        return orders.unpack_reply(message) if message else None

    def fork(self, order: bytes, descriptors: Sequence[int]) -> None:
        """Order the parent process to fork a child.

        Args:
            order: The packed order.
            descriptors: The child's ends of its pipes, and the ``cgroup.procs`` files of its control group.

        Raises:
            OSError: The parent has ended.
        """
        socket.send_fds(self.control, [order], descriptors)

    def send(self, order: bytes) -> None:
        """Send the parent process an order without descriptors.

        Raises:
            OSError: The parent has ended.
        """
        self.control.send(order)

    def receive(self) -> orders.OrderReply | None:
        """Receive the next message from the parent process; ``None`` if the process has ended."""
        message = self.control.recv(orders.MAX_BYTES)
        if not message:
            return None
        self._pinged_at = None
        return orders.unpack_reply(message)

    def check(self, stall_timeout_s: float) -> bool:
        """Send a ping; return false if an earlier ping has had no answer for ``stall_timeout_s`` seconds."""
        now = time.monotonic()
        if self._pinged_at is not None:
            return now - self._pinged_at < stall_timeout_s
        self._pinged_at = now
        try:
            with contextlib.suppress(BlockingIOError):
                self.control.send(orders.pack_order(orders.PING), socket.MSG_DONTWAIT)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """End the parent process and all its children."""
        self.control.close()
