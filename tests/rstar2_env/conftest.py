"""Shared by these tests: their helpers, and a Ray cluster of several nodes on this machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest


class RayTestCluster:
    """Nodes that come and go. The first one offers no CPUs; tests tell theirs from others' by a resource.

    Attributes:
        address: Where the cluster is.
    """

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        # A node that dies refuses connections, which is noticed after about a second (Ray's own periods take a quarter
        # of a minute). A node that is slow because the machine is busy has ten seconds to answer.
        soon = {
            "health_check_initial_delay_ms": 500,
            "health_check_period_ms": 500,
            "health_check_timeout_ms": 10_000,
            "health_check_failure_threshold": 3,
        }
        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": soon, **_SMALL}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.address = str(self._cluster.address)

    def add(self, **options: Any) -> Any:
        """Start a node of one CPU."""
        return self._cluster.add_node(**{"num_cpus": 1, **_SMALL, **options})

    def kill(self, node: Any) -> None:
        """Kill a node with all its processes, as when its machine loses power."""
        self._cluster.remove_node(node, allow_graceful=False)

    def nodes(self) -> set[Any]:
        """Every node but the first."""
        return set(self._cluster.worker_nodes)

    def shutdown(self) -> None:
        """End the cluster."""
        self._cluster.shutdown()


_SMALL = {"object_store_memory": 100 << 20}


@pytest.fixture(scope="session")
def ray_nodes() -> Iterator[RayTestCluster]:
    """A cluster, whose first node has no CPUs; add the nodes that you need, with a resource of your own."""
    pytest.importorskip("ray", reason="Ray is in the extra 'ray'")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = RayTestCluster()
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="module")
def ray_cluster(ray_nodes: RayTestCluster) -> Iterator[RayTestCluster]:
    """The same, with this process connected to it, and without the nodes that the module added when it is over."""
    from rstar2_env.core.net import ray_cluster

    before = ray_nodes.nodes()
    ray_cluster.join(ray_nodes.address, "a test")
    try:
        yield ray_nodes
    finally:
        for node in ray_nodes.nodes() - before:
            ray_nodes.kill(node)
        ray_cluster.leave()


@pytest.fixture
def no_thread_left() -> Iterator[None]:
    """No player's thread outlives a test; the environment that all of its tests use forgets the test before."""
    from scripted_engine import EchoEnv

    EchoEnv.made.clear()
    EchoEnv.gate.clear()
    before = set(threading.enumerate())  # a test without this fixture can have left threads of its own
    yield
    EchoEnv.gate.set()
    left = [t for t in set(threading.enumerate()) - before if t.name.startswith("rstar2-env")]
    assert not left, "a thread of a player is left"
