"""``EngineServers``: access to the servers of an engine from the trainer's thread, for transports."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import Any

from rstar2_env.core.errors import ServiceError
from rstar2_env.core.net.http import HttpClient
from rstar2_env.rollout.engines.vllm_server_fleet import Fleet, Server


class EngineServers:
    """The servers of one engine, whose requests can be paused.

    Args:
        http: The HTTP client.
        fleet: The servers.
        ready: Set while requests may be sent.
        renew: Called with the new version after a weight sync, before requests are resumed.
    """

    def __init__(self, http: HttpClient, fleet: Fleet, ready: asyncio.Event, renew: Callable[[int], None]) -> None:
        self._http, self._fleet, self._ready, self._renew = http, fleet, ready, renew

    @contextmanager
    def paused(self, version: int) -> Iterator[None]:
        """Pause new requests within the block; without an error, they use the new version afterwards."""

        async def hold() -> None:
            self._ready.clear()
            self._fleet.watch()

        async def let_go(done: bool) -> None:
            if done:
                self._renew(version)
            self._ready.set()

        self._http.run_now(hold())
        done = False
        try:
            yield
            done = True
        finally:
            self._http.run_now(let_go(done))

    def every(self) -> list[Server]:
        """All servers."""
        return self._fleet.servers

    def up(self) -> list[Server]:
        """Return the servers that may get requests; waits until there is one.

        Raises:
            ServiceError: There was none for ``patience_s``.
        """

        async def found() -> list[Server]:
            await self._fleet.any_up()
            return self._fleet.up

        return self._http.run_now(found())

    def alive(self, *, wait: bool = True) -> list[Server]:
        """Return the servers that answer, including those that wait for weights.

        Args:
            wait: Wait until there is one.

        Raises:
            ServiceError: There was none for ``patience_s``.
        """
        return self._http.run_now(self._fleet.alive(wait=wait))

    def post(
        self,
        servers: Sequence[Server],
        path: str,
        body: Callable[[Server], Any] | Any = None,
        *,
        timeout_s: float | None = None,
        retries: int | None = None,
    ) -> Future[list[Server]]:
        """Send a POST request to several servers at once.

        Args:
            servers: The servers.
            path: Path of the URL, with a leading slash.
            body: Body of the requests, or a function of the server that returns it.
            timeout_s: Seconds that a server may take, instead of the client's timeout.
            retries: Further attempts, instead of the client's number.

        Returns:
            A future of the servers that succeeded; a server that is lost meanwhile is excluded. If a server refuses,
            the future raises a ``ServiceError``.
        """

        async def one(server: Server) -> bool:
            sent = body(server) if callable(body) else body
            try:
                await self._http.ask("POST", server.base, path, sent, timeout_s=timeout_s, retries=retries)
            except ServiceError as error:
                if error.cause != "lost":
                    raise refused(error) from error
                self._fleet.lost(server, str(error))
                return False
            return True

        async def every() -> list[Server]:
            outcomes = await asyncio.gather(*map(one, servers), return_exceptions=True)
            for outcome in outcomes:
                if isinstance(outcome, BaseException):
                    raise outcome
            return [server for server, done in zip(servers, outcomes, strict=True) if done]

        return self._http.start(every())

    def get(self, server: Server, path: str) -> Any:
        """Send a GET request to one server, and return its answer.

        Raises:
            ServiceError: The server did not answer.
        """
        return self._http.run_now(self._http.ask("GET", server.base, path))

    def exclude(self, servers: Sequence[Server], why: str) -> None:
        """Exclude servers until they have received weights."""

        async def lose() -> None:
            for server in servers:
                self._fleet.lost(server, why)

        self._http.run_now(lose())


class CombinedServers(EngineServers):
    """The servers of several engines, for one weight sync.

    Args:
        parts: The servers of each engine.
    """

    def __init__(self, parts: Sequence[EngineServers]) -> None:
        self._parts = list(parts)

    @contextmanager
    def paused(self, version: int) -> Iterator[None]:
        """See ``EngineServers``."""
        with ExitStack() as all_held:
            for part in self._parts:
                all_held.enter_context(part.paused(version))
            yield

    def every(self) -> list[Server]:
        """See ``EngineServers``."""
        return [server for part in self._parts for server in part.every()]

    def up(self) -> list[Server]:
        """See ``EngineServers``; waits for the first engine's servers if no other has one."""
        return [server for server in self.every() if server.up] or self._parts[0].up()

    def alive(self, *, wait: bool = True) -> list[Server]:
        """See ``EngineServers``; waits for the first engine's servers if no other has one."""
        found = [server for part in self._parts for server in part.alive(wait=False)]
        return found if found or not wait else self._parts[0].alive()

    def post(
        self,
        servers: Sequence[Server],
        path: str,
        body: Callable[[Server], Any] | Any = None,
        *,
        timeout_s: float | None = None,
        retries: int | None = None,
    ) -> Future[list[Server]]:
        """See ``EngineServers``."""
        asked = [
            part.post([one for one in servers if one in part.every()], path, body, timeout_s=timeout_s, retries=retries)
            for part in self._parts
        ]
        return _joined(asked)

    def get(self, server: Server, path: str) -> Any:
        """See ``EngineServers``."""
        return next(part for part in self._parts if server in part.every()).get(server, path)

    def exclude(self, servers: Sequence[Server], why: str) -> None:
        """See ``EngineServers``."""
        for part in self._parts:
            part.exclude([one for one in servers if one in part.every()], why)


def _joined(asked: Sequence[Future[list[Server]]]) -> Future[list[Server]]:
    """Combine futures: return a future of all results together, or of the first error."""
    whole: Future[list[Server]] = Future()
    lock = threading.Lock()
    left = len(asked)

    def one_done(future: Future[list[Server]]) -> None:
        nonlocal left
        with lock:
            left -= 1
            if whole.done():
                return
            error = future.exception()
            if error is not None:
                whole.set_exception(error)
            elif not left:
                whole.set_result([server for one in asked for server in one.result()])

    for future in asked:
        future.add_done_callback(one_done)
    return whole


def refused(error: ServiceError) -> ServiceError:
    """Return the error of a server that did not load weights, with a hint at the cause."""
    hint = ""
    if "404" in str(error):
        hint = " Was the server started with VLLM_SERVER_DEV_MODE=1?"
    elif "Weight transfer not configured" in str(error):
        hint = (
            " transport='group' needs servers that were started with --weight-transfer-config "
            """'{"backend": "nccl"}' (docs/rollout.md); or choose transport='folder'."""
        )
    return ServiceError(f"A server did not load the new weights.{hint} {error}", cause="" if hint else error.cause)
