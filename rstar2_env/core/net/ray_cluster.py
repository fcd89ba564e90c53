"""The Ray cluster that all code in this process shares: joining, leaving, and selecting nodes.

Covered: the use of an existing connection; the creation of a connection, which the last ``leave`` closes; the living
nodes that have a resource; an actor on a given node. Not covered: Ray's client protocol (``ray://``), and starting a
cluster of several machines (``ray start``).
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rstar2_env.core.errors import ConfigurationError, MissingExtraError, SandboxUnavailableError

_KNOCK_S = 10.0

_guard = threading.Lock()
_members = 0
_ours = False  # this process created the connection, so its last user closes it


@dataclass(frozen=True, slots=True)
class RayNode:
    """A living node of the cluster.

    Attributes:
        id: Id of the node in Ray.
        address: IP address of the node.
        cpus: Number of CPUs that it offers, according to Ray.
    """

    id: str
    address: str
    cpus: float

    def __str__(self) -> str:
        """Return the node's name for messages."""
        return f"{self.address} ({self.id[:8]})"


def import_ray(needed_for: str) -> Any:
    """Import and return the module ``ray``.

    Raises:
        MissingExtraError: Ray is not installed.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise MissingExtraError("ray", needed_for) from error
    return ray


def join(address: str | None, needed_for: str) -> Any:
    """Connect this process to a Ray cluster unless it is connected; return the module ``ray``. Call ``leave`` later.

    Args:
        address: Address of a cluster ("10.0.0.1:6379"); "auto" for the one that runs on this machine, "local" to start
            one on this machine only; ``None`` for ``$RAY_ADDRESS``, otherwise a cluster that runs on this machine,
            otherwise a new one.
        needed_for: The feature that needs Ray, for the error if it is missing.

    Raises:
        MissingExtraError: Ray is not installed.
        ConfigurationError: The process is connected to another cluster already, or the address uses Ray's client
            protocol.
        SandboxUnavailableError: No connection can be made.
    """
    global _members, _ours
    if address is not None and "://" in address:
        raise ConfigurationError(
            f"The address {address!r} uses Ray's client protocol (ray://), which is not supported: run on a "
            "machine of the cluster, and give the address of the cluster itself."
        )
    where = None if address in (None, "auto", "local") else _host_and_port(address)
    ray = import_ray(needed_for)
    with _guard:
        if ray.is_initialized():
            there = str(ray.get_runtime_context().gcs_address)
            if where is not None and address != there:
                raise ConfigurationError(
                    f"This process is already connected to the Ray cluster at {there}, but address= names "
                    f"another cluster, {address!r}: omit address=, or call ray.shutdown() first."
                )
            if _members == 0:
                _ours = False
        else:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            if where is not None:
                _knock(*where)
            try:
                ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
            except Exception as error:  # Ray raises various errors for an address without a server
                raise SandboxUnavailableError(f"This process could not connect to a Ray cluster: {error}") from error
            _members, _ours = 0, True
        _members += 1
    return ray


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigurationError(
            f'address must be the address of a Ray cluster ("10.0.0.1:6379"), "auto" or "local", not {address!r}.'
        )
    return host, int(port)


def _knock(host: str, port: int) -> None:
    """Check that a server answers at the address, since Ray itself takes minutes to give up."""
    try:
        socket.create_connection((host.strip("[]"), port), timeout=_KNOCK_S).close()
    except (OSError, OverflowError) as error:
        raise SandboxUnavailableError(f"The Ray cluster at {host}:{port} cannot be reached: {error}") from error


def leave() -> None:
    """Undo one ``join``. The last call closes the connection and stops the cluster, if ``join`` created them."""
    global _members
    import ray

    with _guard:
        _members = max(0, _members - 1)
        if _members == 0 and _ours and ray.is_initialized():
            ray.shutdown()


def connected() -> Any:
    """Return the module ``ray``; raise an error if the process is not connected, since Ray would start a new cluster.

    Raises:
        SandboxUnavailableError: The process is no longer connected.
    """
    import ray

    if not ray.is_initialized():
        raise SandboxUnavailableError(
            "This process is no longer connected to Ray, because ray.shutdown() was called: create the sandbox or the "
            "environments again."
        )
    return ray


def living_nodes(resource: str | None = None) -> list[RayNode]:
    """Return the living nodes that offer CPUs and have ``resource`` (if given), in a fixed order.

    Raises:
        SandboxUnavailableError: This process is no longer connected to Ray.
    """
    found = []
    for node in connected().nodes():
        offers = node.get("Resources", {})
        if node["Alive"] and offers.get("CPU", 0) > 0 and (resource is None or offers.get(resource, 0) > 0):
            found.append(RayNode(node["NodeID"], node["NodeManagerAddress"], float(offers["CPU"])))
    return sorted(found, key=lambda node: node.id)


def no_node(resource: str | None) -> str:
    """Return the error message for a cluster in which ``living_nodes`` finds no node."""
    if resource is None:
        return "No running node of the Ray cluster offers CPUs."
    return (
        f"No running node of the Ray cluster offers CPUs and the resource {resource!r}: start nodes with "
        f"ray start --resources='{{\"{resource}\": 1}}', or omit resource=."
    )


async def answer_from(node: RayNode) -> None:
    """Wait until a worker process of one given node has run a Ray task.

    Raises:
        Exception: Ray cannot run the task (Ray raises many exception classes), or this process is no longer connected.
    """
    await connected().remote(_answer).options(num_cpus=0, max_retries=0, scheduling_strategy=_only_on(node)).remote()


def _answer() -> None:
    """Do nothing: if this Ray task ends, its node can run processes."""


def _only_on(node: RayNode) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node.id, soft=False)


def actor_on(node: RayNode, make: Callable[..., Any], *arguments: Any, threads: int, cpus: float = 0.0) -> Any:
    """Start a Ray actor on one given node; Ray neither restarts it nor repeats its calls.

    Args:
        node: The node.
        make: The actor's class.
        *arguments: Arguments of its constructor.
        threads: Number of calls that run in it concurrently.
        cpus: Number of CPUs that it reserves in Ray.
    """
    options: dict[str, Any] = {
        "num_cpus": cpus,
        "max_restarts": 0,
        "max_task_retries": 0,
        "max_concurrency": threads,
        "scheduling_strategy": _only_on(node),
    }
    return connected().remote(make).options(**options).remote(*arguments)
