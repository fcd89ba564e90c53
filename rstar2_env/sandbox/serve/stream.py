"""Streams the outcomes of a batch, one JSON object per line, so that a slow call does not delay the others.

Covered: the answer to a batch of calls, heartbeats while no call finishes, clients that disconnect. Not covered: how
calls run (``service``).
"""

from __future__ import annotations

import asyncio

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from rstar2_env.sandbox.fleet.codec import dump, outcome_to_json
from rstar2_env.sandbox.messages import lost
from rstar2_env.sandbox.serve.service import ServedCall, Service

_GATHER_S = 0.01
"""Seconds for which outcomes are collected if calls wait in the queue. They are sent together, since the cost of a
packet matters for short calls."""
_FORGOTTEN = lost("The call has run, but its outcome is no longer kept.", 1)
_UNREAD = lost("The call has run, but the client did not read the outcomes of this request fast enough.", 1)


class OutcomeStream(Response):
    """The response to a batch of calls: one line for each call, sent as soon as the call is refused or finished."""

    media_type = "application/x-ndjson"

    def __init__(self, service: Service) -> None:
        super().__init__(status_code=200, headers={"Cache-Control": "no-store"})
        del self.headers["content-length"]  # not known in advance
        self._service = service
        self._waiting: set[ServedCall] = set()
        self._lines: list[bytes] = []
        self._held = 0
        """Number of bytes in lines that were not sent yet because the client does not read them."""
        self._room = int(service.options.max_answer_mb * (1 << 20))
        self._changed = asyncio.Event()
        self._gone = False

    def wait_for(self, call: ServedCall) -> None:
        """Send the answer of a call as soon as the call finishes."""
        if call.done:
            self._add_answer(call)
        else:
            call.watchers.add(self.finished)
            self._waiting.add(call)

    def add(self, line: bytes) -> None:
        """Add a line to the answer."""
        self._lines.append(line)
        self._held += len(line) + 1

    def finished(self, call: ServedCall) -> None:
        """Send the answer of a call that has just finished."""
        self._waiting.discard(call)
        self._add_answer(call)
        self._changed.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer; if the client disconnects, stop, and no longer wait for its calls."""
        departure = asyncio.create_task(self._watch(receive))
        beat = asyncio.create_task(self._beat())
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            while not self._gone and (self._waiting or self._lines):
                if not self._lines:
                    self._changed.clear()
                    await self._changed.wait()
                    if self._service.waiting and not self._gone:
                        await asyncio.sleep(_GATHER_S)
                    continue
                body = b"\n".join((*self._lines, b""))
                self._lines.clear()
                await send({"type": "http.response.body", "body": body, "more_body": True})
                self._held -= len(body)
            if not self._gone:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except OSError:  # some servers raise it for a client that has gone
            pass
        finally:
            departure.cancel()
            beat.cancel()
            for call in self._waiting:
                self._service.leave(call, self.finished, grace_s=self._service.options.orphan_timeout_s)

    def _add_answer(self, call: ServedCall) -> None:
        line = answer_line(call)
        if self._held + len(line) > self._room:
            line = dump({"id": call.id, "outcome": outcome_to_json(_UNREAD)})
        self.add(line)

    async def _watch(self, receive: Receive) -> None:
        await until_disconnect(receive)
        self._gone = True
        self._changed.set()

    async def _beat(self) -> None:
        """Send an empty line periodically, so that client and server notice a lost connection."""
        while True:
            await asyncio.sleep(self._service.options.beat_s)
            if not self._lines:
                self.add(b"")
                self._changed.set()


async def until_disconnect(receive: Receive) -> None:
    """Wait until the client of a request disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


def answer_line(call: ServedCall) -> bytes:
    """Return the answer of a finished call as one line of JSON."""
    if call.answer is not None:
        return call.answer
    return dump({"id": call.id, "outcome": outcome_to_json(_FORGOTTEN)})
