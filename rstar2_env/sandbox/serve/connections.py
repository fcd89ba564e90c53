"""Connections of the server: how many there may be, and how long each may take over a request's header.

Covered: plain HTTP/1.1, whatever else of uvicorn's is installed; its own bound on the size of an unfinished header
(64 KiB) applies. Not covered: a client that sends its body slowly, which holds its own connection alone.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from rstar2_env.core.descriptors import allow_descriptors

_RESERVED = 128
"""Descriptors that the server needs besides those of its connections: the sandbox's, its log's, its listener's."""


def bounded(most: int, header_s: float) -> type[H11Protocol]:
    """The protocol class of a server whose connections are bounded.

    Args:
        most: Largest number of connections; a further one is closed at once. Fewer where the process may not have as
            many descriptors.
        header_s: Seconds that a request's header may take from its first byte, or from the connection's start.
    """
    most = min(most, allow_descriptors() - _RESERVED)

    class Bounded(H11Protocol):
        """A connection that is closed when there are too many, or when its header takes too long."""

        _waiting: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > most:
                transport.abort()
            else:
                self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            # The client is idle until its header is whole; what it has sent of one is still unread then.
            if self.conn.their_state is not h11.IDLE:
                self._rest()
            elif self._waiting is None and self.conn.trailing_data[0]:
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._rest()
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._waiting = self.loop.call_later(header_s, self.transport.abort)

        def _rest(self) -> None:
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None

    return Bounded
