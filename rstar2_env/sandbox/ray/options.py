"""Options of the provider ``ray``, including the options of the local sandbox on every node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from rstar2_env.core.options.declare import option, typed_options
from rstar2_env.sandbox.fleet.options import FleetOptions
from rstar2_env.sandbox.options import LocalOptions


@dataclass(frozen=True)
class RayOptions(FleetOptions):
    """Options of the provider ``ray``.

    Attributes:
        address: Address of the cluster. ``None`` uses the first that exists: this process's connection,
            ``$RAY_ADDRESS``, or a cluster on this machine; if none exists, Ray starts a cluster on this machine.
        resource: Use only nodes that offer this Ray resource; ``None`` uses every node with CPUs.
        reserve_cpus: CPUs that Ray reserves for the sandbox of each node.
        retries: How many times a call is retried after a failure of the sandbox itself, on any node.
        stall_timeout_s: Seconds without an answer (at least 5) after which a node's actor is compared with a new
            process on the node. The actor is killed as stuck if it stays silent for twice the time in which that
            process answers, or for ``start_timeout_s`` if the process does not answer either. The actor is also killed
            if it answers while its server does not.
        start_timeout_s: Seconds within which the sandbox of a node must start.
        reconnect_timeout_s: Seconds that calls wait while there is no node, before they are ``unavailable``.
        watch_s: Seconds between two queries for the nodes of the cluster.
        local: Options of the sandbox on every node; see ``LocalOptions``. The default of ``workers`` is the number of
            CPUs that the node offers to Ray.
    """

    provider: ClassVar[str] = "ray"

    address: str | None = None
    resource: str | None = None
    reserve_cpus: float = option(0.0, least=0)
    stall_timeout_s: float = option(30.0, least=5, unit="seconds")
    start_timeout_s: float = option(180.0, above=0, unit="seconds")
    watch_s: float = option(1.0, above=0, unit="seconds")
    local: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            ConfigurationError: A value is out of range or has the wrong type.
        """
        super().__post_init__()
        # Paths are checked on the nodes, where they are read.
        LocalOptions.from_mapping({name: value for name, value in self.local.items() if name != "readable"})

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> RayOptions:
        """Create options from names and values, which may include options of the local sandbox.

        Raises:
            ConfigurationError: An option is unknown, or its value is invalid.
        """
        own = {option.name for option in fields(cls)} - {"local"}
        typed = typed_options("ray sandbox", cls, given)
        local = {name: typed.pop(name) for name in typed.keys() - own}
        return cls(**typed, local=local)

    @staticmethod
    def more_options() -> tuple[type[LocalOptions], ...]:
        """Return the classes whose options are accepted in addition to the fields of this class."""
        return (LocalOptions,)

    def as_given(self) -> dict[str, Any]:
        """Return the options as a dictionary, from which equal options can be constructed."""
        own = super().as_given()
        return {**own.pop("local"), **own}
