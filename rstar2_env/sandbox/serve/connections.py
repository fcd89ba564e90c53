"""Limits on the connections of the server: their number, and the time that a request's header may take.

If there are too many connections, the oldest one without a complete request is closed, so that clients that send
requests slowly or not at all do not block other clients.

Covered: HTTP/1.1 with h11, even if other protocols are installed; uvicorn limits an unfinished header to 64 KiB.
Not covered: a client that sends its body slowly, which blocks only its own connection.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from rstar2_env.core.open_file_limit import raise_open_file_limit

_RESERVED = 128
"""Number of file descriptors reserved for other uses than connections: for sandbox, log and listening socket."""


def bounded(most: int, header_timeout_s: float) -> type[H11Protocol]:
    """Create a protocol class for uvicorn whose connections are limited.

    Args:
        most: Largest number of connections; reduced if this process's limit on open files requires it.
        header_timeout_s: Maximum seconds for the header of a request, counted from the start of the connection for its
            first request, and from the header's first byte for later requests.
    """
    most = min(most, raise_open_file_limit() - _RESERVED)

    unfinished: dict[Bounded, None] = {}  # open connections without a complete request, the oldest first

    class Bounded(H11Protocol):
        """A connection that is closed if there are too many connections, or if a request's header takes too long."""

        _waiting: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            unfinished[self] = None
            self._wait()
            if len(self.connections) > most:
                oldest = next(iter(unfinished))  # this one, if all others have a complete request
                del unfinished[oldest]
                oldest.transport.abort()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            # h11 reports the client as idle until its header is complete; a partial header is trailing data.
            if self.conn.their_state is not h11.IDLE:
                self._rest()
            elif self._waiting is None and self.conn.trailing_data[0]:
                self._wait()
            if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
                unfinished.pop(self, None)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
                unfinished[self] = None  # it waits for its next request

        def connection_lost(self, exc: Exception | None) -> None:
            unfinished.pop(self, None)
            self._rest()
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._waiting = self.loop.call_later(header_timeout_s, self.transport.abort)

        def _rest(self) -> None:
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None

    return Bounded
