"""``Fleet``: the servers of an engine: which one gets a request, which are lost, and how a lost one comes back.

Covered: balance by requests in flight; the turns of an episode at the server that holds their prefix; servers that die,
hang up or restart. A lost server gets no requests until it answers again and has been readmitted, which is where its
owner looks at it anew and gives it the present weights: one that restarted would otherwise answer with those that it
was started with. A server counts as lost when a connection to it fails; each is asked every few seconds whether it is
there, so that a restart between two requests is seen too. Not covered: starting servers.

Everything here runs in the event loop of the HTTP client.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.core.net.http import HttpClient
from rstar2_env.rollout.engine import EngineStats
from rstar2_env.rollout.engines.vllm_server_facts import ServerFacts, read_metrics, stats_of

_log = logging.getLogger(__name__)

_BLOCK = 64
"""Block size, in tokens, in which prefixes are recorded."""

_MOST_BLOCKS = 1 << 18
_SLACK = 8
_REST_S = 10.0
_WATCH_S = 2.0
"""Seconds between two questions whether a server is there: less than any ``vllm serve`` needs to start."""
_FIRST_ASK_S, _SLOWEST_ASK_S = 0.1, 2.0
_ANSWER_S = 10.0


@dataclass(slots=True, eq=False)
class Server:
    """One server.

    Attributes:
        base: Its address.
        facts: Its properties.
        in_flight: Requests that it works on.
        resting_until: It gets no requests before this, if another can take them.
        up: Whether it may get requests.
        why: Why it is not up.
        losses: How often it was lost.
    """

    base: str
    facts: ServerFacts
    in_flight: int = 0
    resting_until: float = 0.0
    up: bool = True
    why: str = ""
    losses: int = 0


class Fleet:
    """Several servers of one model.

    Args:
        http: The client that asks them.
        servers: The servers, all up.
        readmit: Looks at a server that answers again, and gives it the present weights; if it raises, the server stays
            out and is asked again.
        patience_s: Seconds to wait while no server is up.
    """

    def __init__(
        self,
        http: HttpClient,
        servers: Sequence[Server],
        readmit: Callable[[Server], Awaitable[None]],
        *,
        patience_s: float,
    ) -> None:
        self.servers = list(servers)
        self._http, self._readmit, self._patience_s = http, readmit, patience_s
        self._holders: OrderedDict[int, Server] = OrderedDict()
        self._change = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._watching = False

    @property
    def up(self) -> list[Server]:
        """The servers that may get requests."""
        return [server for server in self.servers if server.up]

    async def loads(self) -> list[EngineStats]:
        """The load of each server that is up and says it."""
        read = (read_metrics(self._http, server.base) for server in self.up)
        found = await asyncio.gather(*read, return_exceptions=True)
        return [stats_of(lines) for lines in found if not isinstance(lines, BaseException)]

    def watch(self) -> None:
        """Begin to ask every server, from time to time, whether it is there."""
        if not self._watching:
            self._watching = True
            self._spawn(self._watch())

    def choose(self, chain: Sequence[int], failed: Sequence[str] = ()) -> Server:
        """The server for a request, of those that are up; there must be one.

        Args:
            chain: Hashes of the prompt's blocks (``chain_of``).
            failed: Where this request has failed so far, by address.
        """
        if failed:
            for server in self.servers:
                if server.base == failed[-1]:
                    server.resting_until = time.monotonic() + _REST_S
        up = self.up
        holder = next((self._holders[block] for block in reversed(chain) if block in self._holders), None)
        least = min(server.in_flight for server in up)
        now = time.monotonic()

        def cost(server: Server) -> tuple[int, bool, bool, int]:
            sticky = server is holder and server.in_flight <= 2 * least + _SLACK
            return failed.count(server.base), server.resting_until > now, not sticky, server.in_flight

        return min(up, key=cost)

    def remember(self, chain: Sequence[int], server: Server) -> None:
        """Record that a server holds these blocks."""
        for block in chain:
            self._holders[block] = server
            self._holders.move_to_end(block)
        while len(self._holders) > _MOST_BLOCKS:
            self._holders.popitem(last=False)

    def forget_prefixes(self, server: Server | None = None) -> None:
        """Forget what a server holds, or all of them."""
        kept = [] if server is None else [item for item in self._holders.items() if item[1] is not server]
        self._holders = OrderedDict(kept)

    async def any_up(self) -> None:
        """Wait until a server is up.

        Raises:
            ServiceError: None was, for ``patience_s``; the message says why of each.
        """
        until = time.monotonic() + self._patience_s
        while not self.up:
            left = until - time.monotonic()
            if left <= 0:
                whys = "; ".join(f"{server.base}: {server.why}" for server in self.servers)
                raise ServiceError(f"No vLLM server has answered for {self._patience_s:g} s (patience_s): {whys}")
            self._change.clear()
            try:
                async with asyncio.timeout(left):
                    await self._change.wait()
            except TimeoutError:
                continue

    async def alive(self, *, wait: bool) -> list[Server]:
        """The servers that answer, up or not.

        Args:
            wait: Wait until there is one.

        Raises:
            ServiceError: None answered for ``patience_s``; the message says why of each.
        """
        until = time.monotonic() + self._patience_s
        while True:
            answers = await asyncio.gather(
                *(
                    self._http.ask("GET", server.base, "/health", timeout_s=_ANSWER_S, retries=0)
                    for server in self.servers
                ),
                return_exceptions=True,
            )
            alive = []
            for server, answer in zip(self.servers, answers, strict=True):
                if isinstance(answer, ServiceError):
                    if answer.cause:
                        self.lost(server, str(answer))
                elif isinstance(answer, BaseException):
                    raise answer
                else:
                    alive.append(server)
            if alive or not wait:
                return alive
            if time.monotonic() >= until:
                whys = "; ".join(f"{server.base}: {server.why}" for server in self.servers)
                raise ServiceError(f"No vLLM server has answered for {self._patience_s:g} s (patience_s): {whys}")
            await asyncio.sleep(_SLOWEST_ASK_S)

    def lost(self, server: Server, why: str) -> None:
        """Take a server out until it answers again and has been readmitted."""
        server.why = why
        if not server.up:
            return
        server.up = False
        server.losses += 1
        self.forget_prefixes(server)
        _log.warning("The vLLM server %s is lost (%s); waiting for it to come back.", server.base, why)
        self._spawn(self._revive(server))

    async def _revive(self, server: Server) -> None:
        began, pause = time.monotonic(), _FIRST_ASK_S
        while True:
            await asyncio.sleep(pause)
            pause = min(_SLOWEST_ASK_S, 2 * pause)
            try:
                await self._http.ask("GET", server.base, "/health", timeout_s=_ANSWER_S, retries=0)
                await self._readmit(server)
                break
            except (ServiceError, ConfigurationError) as error:
                server.why = str(error)
        server.up, server.resting_until = True, 0.0
        _log.warning("The vLLM server %s is back after %.1f s.", server.base, time.monotonic() - began)
        self._change.set()

    async def look_at(self, server: Server) -> None:
        """Ask a server whether it is there; it counts as lost if it says no, or nobody answers."""
        try:
            await self._http.ask("GET", server.base, "/health", timeout_s=_ANSWER_S, retries=0)
        except ServiceError as error:
            # One that is slow to answer may be busy; its requests have limits of their own.
            if error.cause not in ("", "late"):
                self.lost(server, str(error))

    async def answers(self, server: Server) -> bool:
        """Whether a server says in good time that it is there: one that does not, and was late before, hangs."""
        try:
            await self._http.ask("GET", server.base, "/health", timeout_s=_ANSWER_S, retries=0)
        except ServiceError:
            return False
        return True

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_WATCH_S)
            await asyncio.gather(*(self.look_at(server) for server in self.up))

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def chain_of(ids: Sequence[int]) -> list[int]:
    """A hash for each whole block of ids, of everything up to its end."""
    chain: list[int] = []
    before = 0
    for end in range(_BLOCK, len(ids) + 1, _BLOCK):
        before = hash((before, *ids[end - _BLOCK : end]))
        chain.append(before)
    return chain
