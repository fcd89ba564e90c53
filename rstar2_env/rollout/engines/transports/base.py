"""``Transport``: the base class of ways to send new weights to the servers of an engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from rstar2_env.core.net.http import HttpClient
from rstar2_env.rollout.engines.transports.servers import EngineServers
from rstar2_env.rollout.engines.transports.stored_weights import StoredWeights
from rstar2_env.rollout.engines.vllm_server_fleet import Server

Takes = Literal["weights", "adapter"]


@dataclass(frozen=True)
class TransportSettings:
    """Settings of a transport.

    Attributes:
        http: The HTTP client for the servers.
        run: Identifier of the servers, the same in every process of a run.
        version: Returns the version of the weights that requests use.
        folder: Folder that trainer and servers see under the same path, if there is one.
        bucket_bytes: Maximum number of bytes sent or written at once, except for a larger tensor.
        address: Address at which the servers' machines reach this process; ``None`` determines it.
        timeout_s: Seconds that one server may take for one bucket.
    """

    http: HttpClient
    run: str
    version: Callable[[], int]
    folder: Path | None = None
    bucket_bytes: int = 256 << 20
    address: str | None = None
    timeout_s: float = 600.0


class Transport(ABC):
    """A way of sending weights to servers.

    Args:
        setting: Settings of the engine.

    Attributes:
        takes: The argument of ``update_weights``: all ``weights`` with adapters merged, or only the ``adapter``.
    """

    takes: ClassVar[Takes] = "weights"

    def __init__(self, setting: TransportSettings) -> None:
        self._setting = setting
        self._kept = None if setting.folder is None else StoredWeights(setting, setting.folder, self.takes)

    @abstractmethod
    def send(self, version: int, weights: Any, servers: EngineServers) -> None:
        """Send weights to all servers at once; called in the trainer's thread.

        Args:
            version: Number of these weights.
            weights: A module, a mapping or an iterable of names and tensors; or an ``Adapter``.
            servers: The servers.

        Raises:
            ServiceError: A server refused them, or no server answers; with a ``cause``, another attempt may succeed.
        """

    @abstractmethod
    async def restore(self, server: Server) -> None:
        """Send the newest weights to a server that has come back; called in the loop of the servers' client.

        Raises:
            ServiceError: The weights are not available.
        """

    def served_as(self, model: str, version: int) -> str:
        """Return the model name for requests to a version of the weights, given the name of the served model.

        By default the weights of the served model itself change, so this is its name.
        """
        return model

    def close(self) -> None:
        """Remove the weights that were stored for servers that restart."""
        if self._kept is not None:
            self._kept.remove()
