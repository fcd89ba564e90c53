"""``RaySandbox``: the sandbox of the ``ray`` provider.

Covered: the protocol of a sandbox over all nodes. Not covered: starting and stopping a cluster (``ray start``), code
that is not installed on its nodes (use one image, or Ray's ``runtime_env``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rstar2_env.core import ray_cluster
from rstar2_env.sandbox.base import BaseSandbox
from rstar2_env.sandbox.job import Capability, Job
from rstar2_env.sandbox.ray.dispatcher import Dispatcher
from rstar2_env.sandbox.ray.node import Ticket
from rstar2_env.sandbox.ray.options import RayOptions


class RaySandbox(BaseSandbox):
    """Runs Python programs in local sandboxes on every node of a Ray cluster. Safe to call from any thread.

    Calls go to the node with the most free places. Nodes that join are used. The calls in flight on a node that leaves
    run again elsewhere, up to ``retries`` times.

    Args:
        **options: See ``RayOptions``; may include options of the local sandboxes.

    Raises:
        ConfigurationError: An option is wrong.
        MissingExtraError: Ray is not installed.
        SandboxUnavailableError: There is no connection or no node, or a node does not provide the requested isolation;
            the message names the node.
    """

    options: RayOptions
    unisolated = "isolation='none': programs run with all the rights of Ray's workers. Use it for debugging only."
    lacking = "The sandbox runs without layers that its nodes do not provide"

    def __init__(self, **options: Any) -> None:
        super().__init__(RayOptions.of(options))
        ray_cluster.join(self.options.address, "the ray sandbox")
        self._dispatcher = Dispatcher(self.options)
        try:
            self._dispatcher.start()
        except BaseException:
            self.close()
            raise
        self._started()

    def _submit(self, job: Job) -> Ticket:
        return self._dispatcher.submit(job)

    def end_session(self, name: str) -> None:
        """End a session and forget its state. Unknown names are ignored."""
        if not self._closed:
            self._dispatcher.end_session(name)

    @property
    def closed(self) -> bool:
        """Whether the sandbox accepts no more jobs: it was closed, or has failed permanently."""
        return self._closed or self._dispatcher.closed

    def capabilities(self) -> Sequence[Capability]:
        """Each layer of isolation; active if it is so on every node, else with the names of the nodes without it."""
        layers: dict[str, list[tuple[str, Capability]]] = {}
        for node, capabilities in self.node_capabilities().items():
            for layer in capabilities:
                layers.setdefault(layer.name, []).append((node, layer))
        return tuple(_merged(on_nodes) for on_nodes in layers.values())

    def node_capabilities(self) -> Mapping[str, Sequence[Capability]]:
        """Each layer of isolation on each living node, by the node's address and id."""
        return {str(node.where): node.capabilities for node in list(self._dispatcher.nodes.values())}

    def _end(self) -> None:
        self._dispatcher.close()
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
