"""``RaySandbox``: the sandbox of the provider ``ray``, with a server on every node of a cluster.

Covered: the interface ``Sandbox`` over all nodes. Not covered: the start and end of a cluster (``ray start``), and the
installation of code on its nodes (use one image, or Ray's ``runtime_env``).
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from rstar2_env.core.net import ray_cluster
from rstar2_env.core.secret import Secret
from rstar2_env.sandbox.fleet.client import FleetSandbox
from rstar2_env.sandbox.fleet.servers import FleetServers
from rstar2_env.sandbox.job import Capability
from rstar2_env.sandbox.ray.nodes import Nodes, ServerNode
from rstar2_env.sandbox.ray.options import RayOptions

if TYPE_CHECKING:
    import httpx


class RaySandbox(FleetSandbox):
    """Runs Python programs in local sandboxes on every node of a Ray cluster. Safe to call from any thread.

    Each node gets an actor with a sandbox server, which listens on the address of the node and requires a token that
    this object generates. A call goes to the node with the fewest calls in flight, relative to its number of workers.
    Nodes that join the cluster later are used too. If a node leaves, its calls in flight run again elsewhere, up to
    ``retries`` times.

    Args:
        **options: See ``RayOptions``; may include options of the local sandboxes.

    Raises:
        ConfigurationError: An option is invalid.
        MissingExtraError: Ray is not installed.
        SandboxUnavailableError: There is no connection or no node, or a node does not provide the requested isolation;
            the message names the node.
    """

    options: RayOptions
    unisolated = (
        "isolation='none': the programs run with all the rights of Ray's workers, and can read, change and "
        "delete their files. Use it for debugging only."
    )
    lacking = "The sandbox runs without isolation layers that its nodes do not provide"
    thread_name = "rstar2-sandbox-ray"

    def __init__(self, **options: Any) -> None:
        super().__init__(RayOptions.from_mapping(options), token=Secret(secrets.token_hex(32)))
        self._nodes: Nodes | None = None
        self._joined = False
        try:
            ray_cluster.join(self.options.address, "the ray sandbox")
            self._joined = True
            self._connect()
        except BaseException:
            self.close()
            raise
        self._started()

    def capabilities(self) -> Sequence[Capability]:
        """Return each layer of isolation; it is active if every node has it.

        The detail of a layer that is not active names the nodes that lack it.
        """
        layers: dict[str, list[tuple[str, Capability]]] = {}
        for node, capabilities in self.node_capabilities().items():
            for layer in capabilities:
                layers.setdefault(layer.name, []).append((node, layer))
        return tuple(_merged(on_nodes) for on_nodes in layers.values())

    def node_capabilities(self) -> Mapping[str, Sequence[Capability]]:
        """Return the layers of isolation of each living node, by the node's address and id."""
        return {str(node.where): node.link.layers for node in self.nodes()}

    def nodes(self) -> list[ServerNode]:
        """Return the nodes that have a server."""
        return list(self._nodes.nodes.values()) if self._nodes is not None else []

    @asynccontextmanager
    async def _serving(self, servers: FleetServers, http: httpx.AsyncClient) -> AsyncIterator[None]:
        assert self._token is not None  # created by the constructor
        self._nodes = Nodes(self.options, self._token, servers, http)
        try:
            await self._nodes.start()
            watch = asyncio.create_task(self._nodes.watch())
            try:
                yield
            finally:
                watch.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watch
        finally:
            await self._nodes.stop()

    def _end(self) -> None:
        super()._end()
        if self._joined:
            ray_cluster.leave()

    @property
    def _isolation(self) -> str:
        return str(self.options.local.get("isolation", "strict"))


def _merged(on_nodes: Sequence[tuple[str, Capability]]) -> Capability:
    first = on_nodes[0][1]
    lacking = [f"{node}: {layer.detail}" for node, layer in on_nodes if not layer.active]
    if lacking:
        return Capability(first.name, False, "; ".join(lacking), first.required)
    return Capability(first.name, True, "; ".join(dict.fromkeys(layer.detail for _, layer in on_nodes)), first.required)
