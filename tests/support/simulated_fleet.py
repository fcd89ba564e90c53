"""Sandbox servers that exist only in a test's process, and a clock that no one waits for.

The client's own dispatcher and links talk, through the real httpx, to servers that keep the protocol of
``rstar2_env.sandbox.serve`` and do nothing else: a program is a number and takes as long as the test says. Time passes
when nothing else is left to do, so that hours of waiting, resting and giving up take milliseconds, and a client that
waits for what will never come is found at once. Covered: servers that are killed, restarted, stalled, full, lost or
whose sandbox fails, and connections that are cut. Not covered: real programs and real sockets (``test_faults``).
"""

from __future__ import annotations

import asyncio
import json
import selectors
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import httpx

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox.fleet.codec import PROTOCOL, outcome_to_json
from rstar2_env.sandbox.job import Outcome
from rstar2_env.sandbox.limits import Limits

BEAT_S = 2.0
SILENCE_S = 10.0
_MOST_TURNS = 20_000


class StuckError(AssertionError):
    """Nothing will ever happen again, or no time passes any more."""


class _NoWaiting(selectors.DefaultSelector):
    """Lets time pass instead of waiting for it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._turns = 0

    def select(self, timeout: float | None = None) -> list[Any]:
        found = super().select(0)
        self._turns += 1
        if not found and timeout is None:
            raise StuckError(f"after {self.now:.2f} s, nothing will ever happen again")
        if not found and timeout is not None and timeout > 0:
            self.now += timeout
            self._turns = 0
        if self._turns > _MOST_TURNS:
            raise StuckError(f"after {self.now:.2f} s, something goes round without an end")
        return found


class PatientLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock stands at 0 and moves on when there is nothing else to do."""

    def __init__(self) -> None:
        self._no_waiting = _NoWaiting()
        super().__init__(self._no_waiting)

    def time(self) -> float:
        """Seconds that have passed in it."""
        return self._no_waiting.now


@dataclass
class Server:
    """One server, as a test sees it.

    Attributes:
        host: Its name in addresses.
        slots: Programs that it runs at once.
        started: How many times it started each program, over all of its boots.
        up: Whether it runs.
        stalled: Whether it says nothing, though it goes on working.
        failing: Whether its sandbox fails every program.
        full: Whether it accepts nothing.
    """

    host: str
    slots: int = 1
    started: Counter[str] = field(default_factory=Counter)
    up: bool = True
    stalled: bool = False
    failing: bool = False
    full: bool = False
    boots: int = 0

    def __post_init__(self) -> None:
        self._calls: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._running: dict[str, asyncio.Task[Outcome]] = {}
        self._sessions: dict[str, list[int]] = {}
        self._made = 0
        self._changed = asyncio.Event()
        self._cuts = 0
        self._room = asyncio.Semaphore(self.slots)

    # What a test does to it

    def kill(self) -> None:
        """End it, with every program and session."""
        self.up = False
        running, self._calls, self._running, self._sessions = self._running, {}, {}, {}
        for task in running.values():
            task.cancel()
        self._room = asyncio.Semaphore(self.slots)
        self._tell()

    def restart(self) -> None:
        """End it if it runs, and start it again."""
        self.kill()
        self.boots += 1
        self.up, self.stalled = True, False

    def cut(self) -> None:
        """Cut every connection to it; what it runs goes on."""
        self._cuts += 1
        self._tell()

    def heal(self) -> None:
        """From now on, nothing is wrong with it."""
        if not self.up:
            self.restart()
        self.stalled = self.failing = self.full = False
        self._tell()

    # What the client asks of it

    async def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer a request, as ``rstar2_env.sandbox.serve`` would."""
        cuts = self._cuts
        await asyncio.sleep(0.001)
        if not self.up:
            raise httpx.ConnectError(f"{self.host} does not run")
        if self.stalled:
            await asyncio.sleep(request.extensions["timeout"]["read"])
            raise httpx.ReadTimeout(f"{self.host} says nothing")
        if self._cuts != cuts:
            raise httpx.ReadError(f"{self.host} was cut off")
        path = request.url.path
        if path == "/capabilities":
            return httpx.Response(200, json=self._facts())
        body = json.loads(request.content)
        if path == "/v1/cancel":
            for call_id in body["ids"]:
                if call_id in self._running:
                    self._running[call_id].cancel()
            return httpx.Response(204)
        if path == "/v1/sessions/end":
            for name in body["sessions"]:
                self._sessions.pop(name, None)
            return httpx.Response(204)
        if body["boot"] != self._boot:
            return httpx.Response(409, json={"error": "This server was restarted.", "boot": self._boot})
        if self.full and not any(call["id"] in self._calls for call in body["calls"]):
            return httpx.Response(429, json={"error": "full", "refused": "full", "retry_after_s": 0.2})
        for call in body["calls"]:
            if call["id"] not in self._calls:
                self._calls[call["id"]] = asyncio.get_running_loop().create_future()
                task = self._running[call["id"]] = asyncio.create_task(self._run(call))
                task.add_done_callback(partial(self._ended, call))
        return httpx.Response(200, stream=_Answers(self, [call["id"] for call in body["calls"]]))

    async def _run(self, call: dict[str, Any]) -> Outcome:
        number, _, seconds = call["code"].partition(" ")
        async with self._room:
            self.started[number] += 1
            failing = self.failing
            await asyncio.sleep(0.001 if failing else float(seconds))
        session = call.get("session")
        return self._failed(session) if failing or self.failing else self._ran(number, session)

    def _ended(self, call: dict[str, Any], task: asyncio.Task[Outcome]) -> None:
        if self._running.get(call["id"]) is not task:
            return  # the server was killed
        del self._running[call["id"]]
        outcome = self._failed(call.get("session")) if task.cancelled() else task.result()
        self._calls[call["id"]].set_result({"id": call["id"], "outcome": outcome_to_json(outcome)})
        self._tell()

    def _ran(self, number: str, session: str | None) -> Outcome:
        """A program says its number; a cell also says in which process it ran, and as which cell of it."""
        if session is None:
            return Outcome(ToolStatus.OK, value=number)
        state = "kept" if session in self._sessions else "new"
        if state == "new":
            self._made += 1
            self._sessions[session] = [self._made, 0]
        process = self._sessions[session]
        process[1] += 1
        return Outcome(
            ToolStatus.OK, value=f"{number} {self.host}:{self.boots}:{process[0]} {process[1]}", session=state
        )

    def _failed(self, session: str | None) -> Outcome:
        if session is not None:
            self._sessions.pop(session, None)
        ended = None if session is None else "ended"
        return Outcome(ToolStatus.UNAVAILABLE, error_message="the sandbox failed", session=ended, reason="lost")

    @property
    def _boot(self) -> str:
        return f"boot {self.boots}"

    def _facts(self) -> dict[str, Any]:
        return {
            "protocol": PROTOCOL,
            "boot": self._boot,
            "slots": self.slots,
            "room": 1000,
            "beat_s": BEAT_S,
            "max_request_bytes": 1 << 20,
            "max_limits": asdict(Limits()),
            "layers": [],
        }

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


class _Answers(httpx.AsyncByteStream):
    """Answers as they come, until the connection is lost."""

    def __init__(self, server: Server, ids: list[str]) -> None:
        self._server, self._ids = server, ids

    async def __aiter__(self) -> AsyncIterator[bytes]:
        server, left = self._server, list(self._ids)
        boots, cuts, calls = server.boots, server._cuts, server._calls
        while left:
            if not server.up or (server.boots, server._cuts) != (boots, cuts):
                raise httpx.ReadError(f"{server.host} was cut off")
            if server.stalled:
                await asyncio.sleep(SILENCE_S)
                raise httpx.ReadTimeout(f"{server.host} says nothing")
            done = [call_id for call_id in left if calls[call_id].done()]
            for call_id in done:
                left.remove(call_id)
                yield json.dumps(calls[call_id].result()).encode() + b"\n"
            if not done:
                await server._changed.wait()


class Wire(httpx.AsyncBaseTransport):
    """Takes requests to the server that they name."""

    def __init__(self, servers: list[Server]) -> None:
        self._servers = {server.host: server for server in servers}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Pass a request on."""
        await request.aread()
        return await self._servers[request.url.host].answer(request)
