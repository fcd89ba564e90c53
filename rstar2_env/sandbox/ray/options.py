"""The options of the ``ray`` provider: its own, and those of the sandbox on every node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from rstar2_env.core.options.declare import CheckedOptions, option, typed_options
from rstar2_env.sandbox.options import LocalOptions


@dataclass(frozen=True)
class RayOptions(CheckedOptions):
    """Options of the ``ray`` provider.

    Attributes:
        address: Address of the cluster; ``None`` uses this process's connection, or else ``$RAY_ADDRESS``, or else a
            cluster on this machine, or else starts one.
        resource: Use only the nodes that offer this resource in Ray; ``None`` for every node with CPUs.
        reserve_cpus: CPUs that the sandbox of each node reserves in Ray's count, so that Ray puts less else there.
        batch: Largest number of calls in one request to a node. Calls that wait there and are lost with it run again.
        linger_ms: Milliseconds that a call waits for others to share a request with, while every node is busy.
        retries: How many times a call is retried after a failure of the sandbox itself, on any node.
        stall_s: Seconds without an answer after which a node's actor is assumed to be stuck and is killed; at least 5.
        start_s: Seconds that the sandbox of a node may take to start.
        patience_s: Seconds that calls wait while no node is there, before they are ``unavailable``.
        watch_s: Seconds between two queries for the nodes of the cluster.
        local: Options of the sandbox on every node; see ``LocalOptions``. Without ``workers``, a node runs as many
            programs at once as it offers CPUs to Ray.
    """

    address: str | None = None
    resource: str | None = None
    reserve_cpus: float = option(0.0, least=0)
    batch: int = option(64, least=1)
    linger_ms: float = option(2.0, least=0, unit="milliseconds")
    retries: int = option(1, least=0)
    stall_s: float = option(30.0, least=5, unit="seconds")
    start_s: float = option(180.0, above=0, unit="seconds")
    patience_s: float = option(60.0, above=0, unit="seconds", finite=False)
    watch_s: float = option(1.0, above=0, unit="seconds")
    local: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            ConfigurationError: A value is out of its range or of the wrong kind.
        """
        super().__post_init__()
        # Paths are checked where they will be read: on the nodes.
        LocalOptions.from_mapping({name: value for name, value in self.local.items() if name != "readable"})

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> RayOptions:
        """Options from names and values, which may include options of the local sandbox.

        Raises:
            ConfigurationError: There is no option of that name, or its value is wrong.
        """
        own = [option.name for option in fields(cls) if option.name != "local"]
        typed = typed_options("ray sandbox", cls, given)
        local = {name: value for name, value in typed.items() if name not in own}
        return cls(**{name: value for name, value in typed.items() if name in own}, local=local)

    @staticmethod
    def more_options() -> tuple[type[LocalOptions], ...]:
        """Whose options are taken besides the fields."""
        return (LocalOptions,)

    def as_given(self) -> dict[str, Any]:
        """The options as a dictionary, from which equal options can be constructed."""
        own = {option.name: getattr(self, option.name) for option in fields(self) if option.name != "local"}
        return {**own, **self.local}
