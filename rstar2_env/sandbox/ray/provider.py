"""``RaySandbox``: what callers of the ``ray`` provider hold.

Covered: the protocol of a sandbox over all nodes. Not covered: a cluster's own start and end (``ray start``), code that
is not installed on its nodes (use one image, or Ray's ``runtime_env``).
"""

from __future__ import annotations

import atexit
import os
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from rstar2_env.core import ray_cluster
from rstar2_env.core.errors import SandboxUnavailableError
from rstar2_env.sandbox.calls import Caller
from rstar2_env.sandbox.job import Capability, Job
from rstar2_env.sandbox.messages import encode_job
from rstar2_env.sandbox.ray.dispatcher import Dispatcher
from rstar2_env.sandbox.ray.node import Ticket
from rstar2_env.sandbox.ray.options import RayOptions


class RaySandbox(Caller):
    """Runs Python programs in local sandboxes on every node of a Ray cluster. Safe to call from any thread.

    Calls go where there is most room. Nodes that join are used, and those that go are left out; what was in flight
    there runs again elsewhere, within ``retries``.

    Args:
        **options: See ``RayOptions``; options of the local sandboxes may stand among them.

    Raises:
        ConfigurationError: An option is wrong.
        MissingExtraError: Ray is not installed.
        SandboxUnavailableError: There is no connection or no node, or a node cannot give the isolation that was asked
            for; the message names it.
    """

    def __init__(self, **options: Any) -> None:
        self.options = RayOptions.of(options)
        self._pid = os.getpid()
        self._closed = False
        self._lock = threading.Lock()
        ray_cluster.join(self.options.address, "the ray sandbox")
        self._dispatcher = Dispatcher(self.options)
        try:
            self._dispatcher.start()
        except BaseException:
            self.close()
            raise
        _live.add(self)
        self._warn_of_gaps()

    def submit(self, job: Job) -> Ticket:
        """Start a job on its way, without waiting for it.

        Raises:
            ConfigurationError: No sandbox takes such a job.
            SandboxUnavailableError: The sandbox is closed, or belongs to another process.
        """
        if os.getpid() != self._pid:
            raise SandboxUnavailableError(
                "This sandbox belongs to the process that made it, and this is a fork of that one: make another here, "
                "or use shared_sandbox, which does so by itself."
            )
        encode_job(0, job)  # what no sandbox takes is refused here, where its caller hears of it
        return self._dispatcher.submit(job)

    def end_session(self, name: str) -> None:
        """End a session and what it holds; a name that nobody used is harmless."""
        self._dispatcher.end_session(name)

    def capabilities(self) -> Sequence[Capability]:
        """Each layer of isolation; active where it is so on every node, else the nodes without it are named."""
        layers: dict[str, list[tuple[str, Capability]]] = {}
        for node, capabilities in self.node_capabilities().items():
            for layer in capabilities:
                layers.setdefault(layer.name, []).append((node, layer))
        return tuple(_merged(on_nodes) for on_nodes in layers.values())

    def node_capabilities(self) -> Mapping[str, Sequence[Capability]]:
        """Each layer of isolation on each living node, by the node's address and id."""
        return {str(node.where): node.capabilities for node in list(self._dispatcher.nodes.values())}

    def close(self) -> None:
        """End every process that belongs to the sandbox, on every node. Calls in flight become ``unavailable``."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._dispatcher.close()
            _live.discard(self)
            ray_cluster.leave()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its options: another process gets a sandbox of its own."""
        return _rebuild, (type(self), self.options.as_given())

    def _warn_of_gaps(self) -> None:
        """Be loud without isolation, and say once what ``"best"`` has to do without, and where."""
        isolation = self.options.local.get("isolation", "strict")
        gaps = [
            f"{layer.name} ({layer.detail})" for layer in self.capabilities() if layer.required and not layer.active
        ]
        if isolation == "none":
            text = "isolation='none': programs run with all the rights of Ray's workers. Use it for debugging alone."
            warnings.warn(text, RuntimeWarning, stacklevel=4)
        elif gaps and not _warned.intersection({str(gaps)}):
            _warned.add(str(gaps))
            text = f"The sandbox does without what its nodes do not give: {'; '.join(gaps)}."
            warnings.warn(text, RuntimeWarning, stacklevel=4)


def _merged(on_nodes: Sequence[tuple[str, Capability]]) -> Capability:
    first = on_nodes[0][1]
    lacking = [f"{node}: {layer.detail}" for node, layer in on_nodes if not layer.active]
    if lacking:
        return Capability(first.name, False, "; ".join(lacking), first.required)
    return Capability(first.name, True, "; ".join(dict.fromkeys(layer.detail for _, layer in on_nodes)), first.required)


def _rebuild(kind: type[RaySandbox], options: dict[str, Any]) -> RaySandbox:
    return kind(**options)


_live: set[RaySandbox] = set()
_warned: set[str] = set()


@atexit.register
def _close_all() -> None:
    """End what was never closed before Ray ends its connection, which it does in a hook of its own."""
    for sandbox in list(_live):
        sandbox.close()
