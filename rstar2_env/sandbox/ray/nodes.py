"""``Nodes``: starts a sandbox server on each node of a Ray cluster, and follows nodes that join or are lost.

Covered: nodes that join and leave, and actors that die, stall, or have a sandbox that fails repeatedly. A server is
removed only if its node has left or Ray confirms that its actor is dead: until then its calls may still run, so they
must not run elsewhere. Not covered: calls (``rstar2_env.sandbox.fleet``), the actor itself (``keeper``), and whether a
silent actor is stuck (``silence``). Everything here runs in the event loop of the fleet.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rstar2_env.core.errors import ConfigurationError, SandboxUnavailableError
from rstar2_env.core.net.ray_cluster import RayNode, actor_on, living_nodes, no_node
from rstar2_env.core.secret import Secret
from rstar2_env.sandbox.fleet.link import Link, LinkError
from rstar2_env.sandbox.fleet.servers import FleetServers
from rstar2_env.sandbox.ray import silence
from rstar2_env.sandbox.ray.keeper import Keeper, StartResult
from rstar2_env.sandbox.ray.options import RayOptions

if TYPE_CHECKING:
    import httpx

_LONGEST_PAUSE_S = 60.0
_STRIKES = 3
"""Number of consecutive failures of a node's sandbox after which the node's actor is replaced."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerNode:
    """A node of the cluster with a sandbox server.

    Attributes:
        where: Id and address of the node.
        actor: Ray's handle of the actor that runs the server.
        link: The connection of this process to the server.
    """

    where: RayNode
    actor: Any
    link: Link


class Nodes:
    """All cluster nodes that a sandbox uses.

    Args:
        options: The provider's options.
        token: Token that the servers require.
        servers: Collection to which the servers of the nodes are added.
        http: HTTP client for all servers.
    """

    def __init__(self, options: RayOptions, token: Secret, servers: FleetServers, http: httpx.AsyncClient) -> None:
        self.nodes: dict[str, ServerNode] = {}
        self._options, self._token, self._servers, self._http = options, token, servers, http
        self._failures: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self._starting: dict[str, asyncio.Task[None]] = {}
        self._doubts: dict[str, asyncio.Task[None]] = {}
        self._look = asyncio.Event()
        servers.none = no_node(options.resource)
        servers.on_down = self._on_down

    async def start(self) -> None:
        """Start a server on every node.

        Raises:
            SandboxUnavailableError: There is no node, or a node's sandbox does not start, for example because it lacks
                the requested isolation; the message names the node.
            ConfigurationError: A node rejects an option.
        """
        found = await asyncio.to_thread(living_nodes, self._options.resource)
        ends = await asyncio.gather(*(self._start(where) for where in found), return_exceptions=True)
        if any(isinstance(end, BaseException) for end in ends):
            alive = {node.id for node in await asyncio.to_thread(living_nodes, self._options.resource)}
            for where, end in zip(found, ends, strict=True):
                if isinstance(end, BaseException) and where.id in alive:  # a node that died meanwhile is not an error
                    raise end
        if not self.nodes:
            raise SandboxUnavailableError(no_node(self._options.resource))

    async def watch(self) -> None:
        """Add nodes that join and remove nodes that are lost, until this coroutine is cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._options.watch_s):
                    await self._look.wait()
            self._look.clear()
            await self._survey()

    async def stop(self) -> None:
        """End every server with its sandbox, and then the actors."""
        tasks = [*self._starting.values(), *self._doubts.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        nodes = list(self.nodes.values())
        self.nodes.clear()
        await asyncio.gather(*(silence.stop(node.actor) for node in nodes))

    async def _start(self, where: RayNode) -> None:
        local = {"workers": max(1, int(where.cpus)), **self._options.local, "retries": 0}
        arguments = (where.address, local, self._token, self._options.stall_timeout_s)
        actor = actor_on(where, Keeper, *arguments, threads=64, cpus=self._options.reserve_cpus)
        try:
            link = await self._start_server(where, actor)
        except BaseException:
            silence.kill(actor)
            raise
        self.nodes[where.id] = ServerNode(where, actor, link)
        self._servers.add(link)

    async def _start_server(self, where: RayNode, actor: Any) -> Link:
        """Start the server of a node, and connect to it.

        Raises:
            ConfigurationError: The node rejects an option.
            SandboxUnavailableError: The server does not start or does not answer.
        """
        result = StartResult()
        try:
            async with asyncio.timeout(self._options.start_timeout_s):
                result = await actor.start.remote()
                if result.error is None:
                    link = Link(result.url, self._http, strict=False, name=f"on the node {where}")
                    await link.connect(self._options.start_timeout_s)
                    return link
                why = result.error
        except TimeoutError:
            why = f"it was not ready after {self._options.start_timeout_s:g} seconds"
        except LinkError as error:
            why = f"the sandbox server at {result.url} does not answer: {error}"
        except Exception as error:  # Ray raises many kinds: the actor died, its class could not be imported there, ...
            why = f"{type(error).__name__}: {silence.short(error)}"
        if result.mistaken:
            raise ConfigurationError(f"On the node {where}: {why}")
        raise SandboxUnavailableError(f"The sandbox on the node {where} did not start: {why}")

    async def _survey(self) -> None:
        """Remove nodes that left and actors that fail, and start servers on new nodes."""
        try:
            found = {node.id: node for node in await asyncio.to_thread(living_nodes, self._options.resource)}
        except Exception as error:  # Ray raises many kinds; the servers may still answer
            self._servers.none = f"The nodes of the Ray cluster cannot be listed: {error}"
            return
        self._servers.none = no_node(self._options.resource)
        for name, node in list(self.nodes.items()):
            if name not in found:
                self._lose(node, "The node left the cluster.")
            elif node.link.strikes >= _STRIKES and await silence.killed(node.actor):
                self._lose(node, "The sandbox of the node failed repeatedly.")
            elif node.link.up and not node.link.strikes:
                self._failures.pop(name, None)
        now = time.monotonic()
        for name in set(found) - set(self.nodes) - set(self._starting):
            if now >= self._not_before.get(name, now):
                self._starting[name] = asyncio.create_task(self._join(found[name]))

    async def _join(self, where: RayNode) -> None:
        """Start a server on a node that joined later or whose actor died; if that fails, warn, and retry later."""
        try:
            await self._start(where)
        except (SandboxUnavailableError, ConfigurationError) as error:
            self._pause(where.id, 1.0)
            _log.warning("%s No programs run on this node for now.", error)
        finally:
            del self._starting[where.id]

    def _pause(self, name: str, first_s: float) -> None:
        failures = self._failures[name] = self._failures.get(name, 0) + 1
        pause = min(_LONGEST_PAUSE_S, first_s + 2.0 ** min(failures, 10) - 2)
        self._not_before[name] = time.monotonic() + pause

    # Servers that do not answer

    def _on_down(self, link: Link) -> None:
        for name, node in self.nodes.items():
            if node.link is link and name not in self._doubts:
                doubt = self._doubts[name] = asyncio.create_task(self._doubt(node))
                doubt.add_done_callback(partial(self._settled, name))

    def _settled(self, name: str, _: asyncio.Task[None]) -> None:
        self._doubts.pop(name, None)

    async def _doubt(self, node: ServerNode) -> None:
        """Wait until the server of an actor answers again; replace the actor if it is dead or stuck."""
        why = await silence.why_lost(node.actor, node.where, node.link, self._options)
        if why is not None:
            self._lose(node, why)

    def _lose(self, node: ServerNode, why: str) -> None:
        if self.nodes.pop(node.where.id, None) is None:
            return
        silence.kill(node.actor)
        self._pause(node.where.id, 0.0)
        _log.warning("The sandbox on the node %s was lost: %s", node.where, why)
        self._servers.lose(node.link, why)
        self._look.set()
