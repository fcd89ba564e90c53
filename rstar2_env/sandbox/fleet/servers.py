"""The servers of a fleet: which are up, asking those that are down, and giving one up for good.

Covered: the first word of a server, asking until one that is down answers, servers that join and that are lost. Not
covered: their calls (``dispatch``), and how a server is found (``RemoteOptions.urls``, ``rstar2_env.sandbox.ray``).
Everything here runs in one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from rstar2_env.sandbox.fleet.link import Link, LinkError

_ASK_S = 5.0
_SLOWEST_ASK_S = 2.0


class FleetServers:
    """Every server of a fleet.

    Args:
        returned: Called with a server that answers again, or that is gone for good: calls that it had may be lost.
        spawn: Runs a coroutine beside all else.

    Attributes:
        links: The servers that may answer.
        on_down: Called with a server that stops answering.
        none: Why there is no server, where there is none.
        dark_since: When the last one that was up went down, by the loop's clock.
    """

    def __init__(self, returned: Callable[[Link], None], spawn: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        self.links: list[Link] = []
        self.on_down: Callable[[Link], None] = lambda link: None
        self.none = "there is none"
        self.dark_since = 0.0
        self._returned, self._spawn = returned, spawn
        self._reviving: set[Link] = set()

    def __iter__(self) -> Iterator[Link]:
        """Each server."""
        return iter(self.links)

    @property
    def any_up(self) -> bool:
        """Whether one is up."""
        return any(link.up for link in self.links)

    @property
    def why(self) -> str:
        """Why none is up."""
        return "; ".join(f"{link.name}: {link.why}" for link in self.links) or self.none

    async def start(self, within_s: float) -> None:
        """Find the servers.

        Raises:
            LinkError: None can be used; the message says why of each.
        """
        await asyncio.gather(*(self._first_contact(link, within_s) for link in self.links))
        if not self.any_up:
            raise LinkError(self.why)
        for link in self.links:
            if not link.up:
                self.down(link, link.why)

    def add(self, link: Link) -> None:
        """Take on a server that answered."""
        self.links.append(link)
        self._returned(link)

    def down(self, link: Link, why: str) -> None:
        """Mark a server as down, and ask it until it answers."""
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
        """Give up a server that is known to have ended, and every program of it: its calls may run elsewhere."""
        if link.gone:
            return
        # Without a boot of its own, it has lost whatever an earlier one had accepted.
        link.gone, link.up, link.boot, link.why = True, False, "", why
        self.links.remove(link)
        if not self.any_up:
            self.dark_since = asyncio.get_running_loop().time()
        for talk in list(link.talks):
            talk.cancel()
        self._returned(link)

    async def _first_contact(self, link: Link, within_s: float) -> None:
        try:
            await link.ask(within_s)
        except LinkError as error:
            link.why = str(error)

    async def _revive(self, link: Link) -> None:
        delay = min(_SLOWEST_ASK_S, 0.02 * 2 ** min(link.failures, 8))
        try:
            while not (link.up or link.gone):
                await asyncio.sleep(delay)
                delay = min(_SLOWEST_ASK_S, delay * 2)
                try:
                    await link.ask(_ASK_S)
                except LinkError as error:
                    link.why = str(error)
        finally:
            self._reviving.discard(link)
        self._returned(link)
