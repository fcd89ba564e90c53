"""``FleetServers``: tracks which servers of a fleet are up, reconnects to servers that are down, removes lost servers.

Covered: the first contact with a server, reconnection, servers that join and servers that are lost. Not covered: their
calls (``dispatch``), and where the list of servers comes from (``RemoteOptions.urls``, ``rstar2_env.sandbox.ray``).
Everything here runs in one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from rstar2_env.sandbox.fleet.link import Link, LinkError

_CONNECT_S = 5.0
_LONGEST_RETRY_S = 2.0


class FleetServers:
    """All servers of a fleet.

    Args:
        returned: Called with a server when it answers again or is removed; calls that were sent to it may be lost.
        spawn: Runs a coroutine as a task.

    Attributes:
        links: All servers that were not removed.
        on_down: Called with a server that stops answering.
        none: Text that ``why`` returns if ``links`` is empty.
        dark_since: Time on the event loop's clock since which no server has been up; meaningless if ``any_up``.
    """

    def __init__(self, returned: Callable[[Link], None], spawn: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        self.links: list[Link] = []
        self.on_down: Callable[[Link], None] = lambda link: None
        self.none = "no server is known"
        self.dark_since = 0.0
        self._returned, self._spawn = returned, spawn
        self._reviving: set[Link] = set()

    @property
    def any_up(self) -> bool:
        """Whether at least one server is up."""
        return any(link.up for link in self.links)

    @property
    def why(self) -> str:
        """Reason why no server is up: the reason for each server."""
        return "; ".join(f"{link.name}: {link.why}" for link in self.links) or self.none

    async def start(self, within_s: float) -> None:
        """Contact all servers, and mark each server that answers as up.

        Raises:
            LinkError: No server can be used; the message gives the reason for each.
        """
        await asyncio.gather(*(self._contact(link, within_s) for link in self.links))
        if not self.any_up:
            raise LinkError(self.why)
        for link in self.links:
            if not link.up:
                self.down(link, link.why)

    def add(self, link: Link) -> None:
        """Add a server that has already answered."""
        self.links.append(link)
        self._returned(link)

    def down(self, link: Link, why: str) -> None:
        """Mark a server as down, and try to reconnect until the server answers."""
        link.why = why
        if link.gone:
            self._returned(link)
            return
        if link.up:
            link.up, link.down_since = False, asyncio.get_running_loop().time()
            if not self.any_up:
                self.dark_since = link.down_since
            self.on_down(link)
        if link not in self._reviving:
            self._reviving.add(link)
            self._spawn(self._revive(link))

    def lose(self, link: Link, why: str) -> None:
        """Remove a server that has certainly ended with all its programs; its calls may run on other servers."""
        if link.gone:
            return
        # An empty boot id differs from that of every call it accepted, so those calls count as lost.
        link.gone, link.up, link.boot, link.why = True, False, "", why
        self.links.remove(link)
        if not self.any_up:
            self.dark_since = asyncio.get_running_loop().time()
        for talk in list(link.talks):
            talk.cancel()
        self._returned(link)

    async def _contact(self, link: Link, within_s: float) -> None:
        try:
            await link.connect(within_s)
        except LinkError as error:
            link.why = str(error)

    async def _revive(self, link: Link) -> None:
        delay = min(_LONGEST_RETRY_S, 0.02 * 2 ** min(link.failures, 8))
        try:
            while not (link.up or link.gone):
                await asyncio.sleep(delay)
                delay = min(_LONGEST_RETRY_S, delay * 2)
                await self._contact(link, _CONNECT_S)
        finally:
            self._reviving.discard(link)
        self._returned(link)
