"""What a transport is: one way in which new weights reach the servers of an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from rstar2_env.core.net.http import HttpClient
from rstar2_env.rollout.engines.transports.servers import EngineServers
from rstar2_env.rollout.engines.vllm_server_fleet import Server

Takes = Literal["weights", "adapter"]


@dataclass(frozen=True)
class TransportSettings:
    """What a transport knows of its engine.

    Attributes:
        http: The client that asks the servers.
        run: Names the servers; the same in every process of a run.
        version: Returns the version of the weights that requests are drawn with.
        folder: Folder that trainer and servers see under the same path, if there is one.
        bucket_bytes: Most bytes that are sent or written at once, except for a larger tensor.
        address: Address at which the servers' machines reach this process; ``None`` finds it out.
        timeout_s: Seconds that one server may take for one bucket.
    """

    http: HttpClient
    run: str
    version: Callable[[], int]
    folder: Path | None = None
    bucket_bytes: int = 256 << 20
    address: str | None = None
    timeout_s: float = 600.0


class Transport(Protocol):
    """One way of handing weights over.

    Attributes:
        takes: What a trainer passes to ``update_weights``: all ``weights``, adapters merged, or the ``adapter`` alone.
    """

    takes: ClassVar[Takes]

    def send(self, version: int, weights: Any, servers: EngineServers) -> None:
        """Give weights to all servers at once; called in the trainer's thread.

        Args:
            version: Number of these weights.
            weights: A module, a mapping or an iterable of names and tensors; or an ``Adapter``.
            servers: Where they go.

        Raises:
            ServiceError: A server refused them, or none is there; with a ``cause``, another attempt may succeed.
        """
        ...

    async def restore(self, server: Server) -> None:
        """Give the newest weights to a server that has come back; called in the loop of the servers' client.

        Raises:
            ServiceError: They are not there.
        """
        ...

    def served_as(self, model: str, version: int) -> str:
        """The name under which requests reach a version of the weights, given that of the served model."""
        ...

    def close(self) -> None:
        """Remove what was left for servers that come back."""
        ...
