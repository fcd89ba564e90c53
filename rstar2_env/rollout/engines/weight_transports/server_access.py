"""``EngineServers``: lets a transport reach the servers of one or more engines from the trainer's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rstar2_env.core.blocking import all_ended
from rstar2_env.core.errors import ServiceError
from rstar2_env.core.net.http import HttpClient
from rstar2_env.rollout.engines.vllm_server_facts import adapters_of, read_metrics
from rstar2_env.rollout.engines.vllm_server_fleet import Fleet, Server


@dataclass(frozen=True)
class EngineLink:
    """Access to the servers of one engine.

    Attributes:
        http: The HTTP client; ``fleet``, ``ready`` and ``renew`` are used only in its event loop.
        fleet: The servers.
        ready: Event that is set while requests may be sent.
        renew: Called with the new version of the weights after a weight sync, before requests are resumed.
    """

    http: HttpClient
    fleet: Fleet
    ready: asyncio.Event
    renew: Callable[[int], None]

    async def pause(self) -> None:
        """Hold back new requests until ``resume``."""
        self.ready.clear()
        self.fleet.watch()

    async def resume(self, version: int | None) -> None:
        """Record the version of the weights, unless it is ``None``, and stop holding back new requests."""
        if version is not None:
            self.renew(version)
        self.ready.set()


class EngineServers:
    """The servers of one or more engines during a weight sync; new requests to them can be paused.

    Args:
        links: Access to the servers of each engine.
    """

    def __init__(self, links: Sequence[EngineLink]) -> None:
        self._links = list(links)

    @contextmanager
    def paused(self, version: int) -> Iterator[None]:
        """Pause new requests within the ``with`` block; afterwards they use ``version``, unless the block failed."""
        done = None
        try:
            for link in self._links:
                link.http.run_now(link.pause())
            yield
            done = version
        finally:
            for link in self._links:
                link.http.run_now(link.resume(done))

    def every(self) -> list[Server]:
        """Return all servers."""
        return [server for link in self._links for server in link.fleet.servers]

    def up(self) -> list[Server]:
        """Return the servers that may get requests; if there are none, wait until the first engine has one.

        Raises:
            ServiceError: No server was available for ``reconnect_timeout_s``.
        """
        first = self._links[0]
        if not (found := [server for server in self.every() if server.up]):
            first.http.run_now(first.fleet.any_up())
            found = first.fleet.up
        return found

    def alive(self) -> list[Server]:
        """Return the servers that answer, even if they still wait for weights.

        If none answers, wait until a server of the first engine does.

        Raises:
            ServiceError: No server of the first engine answered for ``reconnect_timeout_s``.
        """
        found = [server for link in self._links for server in link.http.run_now(link.fleet.alive(wait=False))]
        first = self._links[0]
        return found or first.http.run_now(first.fleet.alive(wait=True))

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
            servers: Servers that receive the request.
            path: Path of the URL, with a leading slash.
            body: Body of the requests, or a function that returns the body for a server.
            timeout_s: Seconds that a server may take; ``None`` means the client's timeout.
            retries: Further attempts; ``None`` means the client's number.

        Returns:
            A future of the servers that succeeded; a server that is lost meanwhile is excluded. If a server refuses,
            the future raises a ``ServiceError``.
        """

        async def one(server: Server) -> bool:
            link = self._link(server)
            sent = body(server) if callable(body) else body
            try:
                ask = link.http.ask("POST", server.base, path, sent, timeout_s=timeout_s, retries=retries)
                await link.http.run(ask)
            except ServiceError as error:
                if error.cause != "lost":
                    raise refused(error) from error
                link.fleet.lost(server, str(error))
                return False
            return True

        async def each() -> list[Server]:
            return [server for server, done in zip(servers, await all_ended(map(one, servers)), strict=True) if done]

        return self._links[0].http.start(each())

    def get(self, server: Server, path: str) -> Any:
        """Send a GET request to one server, and return its answer.

        Raises:
            ServiceError: The server did not answer.
        """
        http = self._link(server).http
        return http.run_now(http.ask("GET", server.base, path))

    def adapters(self, servers: Sequence[Server]) -> set[str]:
        """Return the names of the adapters that requests on these servers use, if the servers report them."""

        async def one(server: Server) -> set[str]:
            http = self._link(server).http
            try:
                return adapters_of(await http.run(read_metrics(http, server.base)))
            except ServiceError:
                return set()

        async def each() -> set[str]:
            return set[str]().union(*await asyncio.gather(*map(one, servers)))

        return self._links[0].http.run_now(each())

    def exclude(self, servers: Sequence[Server], why: str) -> None:
        """Exclude servers from requests until they have received the newest weights."""

        async def lose(server: Server, link: EngineLink) -> None:
            link.fleet.lost(server, why)

        for server in servers:
            link = self._link(server)
            link.http.run_now(lose(server, link))

    def _link(self, server: Server) -> EngineLink:
        return next(link for link in self._links if server in link.fleet.servers)


def refused(error: ServiceError) -> ServiceError:
    """Return the error to raise if a server did not load weights: the text of ``error`` with a hint at its cause."""
    hint = ""
    if "404" in str(error):
        hint = " Was the server started with VLLM_SERVER_DEV_MODE=1?"
    elif "Weight transfer not configured" in str(error):
        hint = (
            " transport='group' needs servers that were started with --weight-transfer-config "
            """'{"backend": "nccl"}' (docs/weight-sync.md); or choose transport='folder'."""
        )
    return ServiceError(f"A server did not load the new weights.{hint} {error}", cause="" if hint else error.cause)
