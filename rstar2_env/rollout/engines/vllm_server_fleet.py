"""``Fleet``: the servers of an engine: chooses a server for each request, and detects lost servers and readmits them.

Covered: balancing by requests in flight; routing the turns of an episode to the server that caches their prefix;
servers that die, drop connections or restart. A lost server gets no requests until it answers again and has been
readmitted: the engine checks it and sends it the current weights, since a restarted server has its initial weights. A
server is lost when a connection to it fails; a health check every few seconds also detects a restart between two
requests. Not covered: starting servers.

Everything here runs in the event loop of the HTTP client.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.core.net.http import HttpClient
from rstar2_env.rollout.engine import EngineStats
from rstar2_env.rollout.engines.vllm_server_facts import ServerFacts, read_metrics, stats_of

T = TypeVar("T")
_log = logging.getLogger(__name__)

_BLOCK = 64
"""Size, in tokens, of the blocks of a prompt by which a server's cached prefixes are recorded."""

_MOST_BLOCKS = 1 << 18
_SLACK = 8
_REST_S = 10.0
_WATCH_S = 2.0
"""Seconds between two health checks of a server: less than ``vllm serve`` takes to restart."""
_FIRST_ASK_S, _SLOWEST_ASK_S = 0.1, 2.0
_ANSWER_S = 10.0
_HUNG_S = 600.0
"""Seconds after which a server counts as lost if all its health checks timed out."""


@dataclass(slots=True, eq=False)
class Server:
    """One server of the fleet, and its current state.

    Attributes:
        base: Address of the server.
        facts: Properties of the server.
        in_flight: Number of requests that the server is running.
        resting_until: Time (of ``time.monotonic``) before which the server gets requests only if no other server can
            take them.
        up: Whether the server may get requests.
        why: The reason why the server is not up.
        losses: Number of times that the server was lost.
        late_since: Time (of ``time.monotonic``) since which all health checks have timed out; ``None`` if the last
            check did not time out.
    """

    base: str
    facts: ServerFacts
    in_flight: int = 0
    resting_until: float = 0.0
    up: bool = True
    why: str = ""
    losses: int = 0
    late_since: float | None = None
    _asked: set[asyncio.Future[Any]] = field(default_factory=set)

    async def until_lost(self, request: Awaitable[T]) -> T:
        """Await a request to this server, but stop waiting when the server is lost.

        Raises:
            ServiceError: The server was lost.
        """
        losses, asked = self.losses, asyncio.ensure_future(request)
        self._asked.add(asked)
        try:
            return await asked
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if self.losses == losses or (task is not None and task.cancelling()):
                raise
            raise ServiceError(f"The vLLM server {self.base} cannot be used now: {self.why}", cause="lost") from error
        finally:
            self._asked.discard(asked)

    def give_up(self) -> None:
        """Cancel all requests to this server."""
        for asked in list(self._asked):
            asked.cancel()


class Fleet:
    """The servers of one engine, which all serve the same model.

    Args:
        http: The HTTP client.
        servers: The servers, all up.
        readmit: Checks a server that answers again, and sends it the current weights; if it raises, the server stays
            excluded and is checked again later.
        reconnect_timeout_s: Seconds to wait while no server is up.
    """

    def __init__(
        self,
        http: HttpClient,
        servers: Sequence[Server],
        readmit: Callable[[Server], Awaitable[None]],
        *,
        reconnect_timeout_s: float,
    ) -> None:
        self.servers = list(servers)
        self._http, self._readmit, self._reconnect_timeout_s = http, readmit, reconnect_timeout_s
        self._holders: OrderedDict[int, Server] = OrderedDict()
        self._change = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._watching = False

    @property
    def up(self) -> list[Server]:
        """The servers that may get requests."""
        return [server for server in self.servers if server.up]

    async def loads(self) -> list[EngineStats]:
        """The load of each server that is up and reports it."""
        read = (read_metrics(self._http, server.base) for server in self.up)
        found = await asyncio.gather(*read, return_exceptions=True)
        return [stats_of(lines) for lines in found if not isinstance(lines, BaseException)]

    def watch(self) -> None:
        """Start the periodic health checks of all servers."""
        if not self._watching:
            self._watching = True
            self._spawn(self._watch())

    def choose(self, chain: Sequence[int], failed: Sequence[str] = ()) -> Server:
        """Choose a server for a request; at least one server must be up.

        Args:
            chain: Hashes of the prompt's blocks (``chain_of``).
            failed: Addresses of the servers where this request has failed so far.
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
        """Record that a server caches the blocks of a prompt."""
        for block in chain:
            self._holders[block] = server
            self._holders.move_to_end(block)
        while len(self._holders) > _MOST_BLOCKS:
            self._holders.popitem(last=False)

    def forget_prefixes(self, server: Server | None = None) -> None:
        """Forget the cached prefixes of one server, or of all servers."""
        kept = [] if server is None else [item for item in self._holders.items() if item[1] is not server]
        self._holders = OrderedDict(kept)

    async def any_up(self) -> None:
        """Wait until at least one server is up.

        Raises:
            ServiceError: No server was up for ``reconnect_timeout_s``; the message names the reason for each server.
        """
        until = time.monotonic() + self._reconnect_timeout_s
        while not self.up:
            left = until - time.monotonic()
            if left <= 0:
                raise self._no_answer()
            self._change.clear()
            try:
                async with asyncio.timeout(left):
                    await self._change.wait()
            except TimeoutError:
                continue

    async def alive(self, *, wait: bool) -> list[Server]:
        """Return the servers that answer, including servers that may not get requests yet.

        Args:
            wait: Wait until at least one server answers.

        Raises:
            ServiceError: No server answered for ``reconnect_timeout_s``; the message names the reason for each server.
        """
        until = time.monotonic() + self._reconnect_timeout_s
        while True:
            answers = await asyncio.gather(*map(self._ping, self.servers), return_exceptions=True)
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
                raise self._no_answer()
            await asyncio.sleep(_SLOWEST_ASK_S)

    def _no_answer(self) -> ServiceError:
        whys = "; ".join(f"{server.base}: {server.why}" for server in self.servers)
        return ServiceError(
            f"None of the vLLM servers has answered for {self._reconnect_timeout_s:g} s (reconnect_timeout_s): {whys}"
        )

    def lost(self, server: Server, why: str) -> None:
        """Exclude a server until it answers again and has been readmitted."""
        server.why = why
        if not server.up:
            return
        server.up = False
        server.losses += 1
        self.forget_prefixes(server)
        server.give_up()
        _log.warning(
            "The vLLM server %s gets no requests for now (%s); waiting until it can be used again.", server.base, why
        )
        self._spawn(self._revive(server))

    async def _revive(self, server: Server) -> None:
        began, pause = time.monotonic(), _FIRST_ASK_S
        while True:
            await asyncio.sleep(pause)
            pause = min(_SLOWEST_ASK_S, 2 * pause)
            try:
                await self._ping(server)
                await self._readmit(server)
                break
            except (ServiceError, ConfigurationError) as error:
                server.why = str(error)
        server.up, server.resting_until, server.late_since = True, 0.0, None
        _log.warning("The vLLM server %s can be used again after %.1f s.", server.base, time.monotonic() - began)
        self._change.set()

    async def look_at(self, server: Server) -> None:
        """Check a server's health; call ``lost`` if it is unreachable, or if its checks timed out for ten minutes."""
        try:
            await self._ping(server)
        except ServiceError as error:
            now = time.monotonic()
            if error.cause == "late":
                # A slow server may be busy.
                server.late_since = now if server.late_since is None else server.late_since
            if error.cause not in ("", "late") or now - (server.late_since or now) > _HUNG_S:
                self.lost(server, str(error))
        else:
            server.late_since = None

    async def answers(self, server: Server) -> bool:
        """Return whether a server passes a health check in time; called when a request has timed out."""
        try:
            await self._ping(server)
        except ServiceError:
            return False
        return True

    async def _ping(self, server: Server) -> None:
        await self._http.ask("GET", server.base, "/health", timeout_s=_ANSWER_S, retries=0)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_WATCH_S)
            await asyncio.gather(*(self.look_at(server) for server in self.up))

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def chain_of(ids: Sequence[int]) -> list[int]:
    """Return a hash for each complete block of ``_BLOCK`` ids; a hash covers all ids up to the end of its block."""
    chain: list[int] = []
    before = 0
    for end in range(_BLOCK, len(ids) + 1, _BLOCK):
        before = hash((before, *ids[end - _BLOCK : end]))
        chain.append(before)
    return chain
