"""``Transport``: the base class of ways to send new weights to the servers of an engine.

Not covered: when weights are sent (``trainers/backends/trl/weight_sync/engine.py``), and vLLM in this process, which
loads weights itself (``vllm_engine.py``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

from rstar2_env.rollout.engines.vllm_server_fleet import Server
from rstar2_env.rollout.engines.weight_transports.server_access import EngineServers
from rstar2_env.rollout.engines.weight_transports.settings import TransportSettings
from rstar2_env.rollout.engines.weight_transports.stored_weights import StoredWeights

Takes = Literal["weights", "adapter"]


class Transport(ABC):
    """A way to send new weights to the servers of an engine.

    Args:
        setting: Settings of the engine.

    Attributes:
        takes: Kind of weights that ``update_weights`` needs: ``"weights"`` (all, adapters merged) or ``"adapter"``.
    """

    takes: ClassVar[Takes] = "weights"

    def __init__(self, setting: TransportSettings) -> None:
        self._setting = setting
        self._kept = None if setting.folder is None else StoredWeights(setting, setting.folder, self.takes)

    async def check(self, base: str) -> None:
        """Check that a server supports this transport; called at the start, in the event loop of the servers' client.

        Args:
            base: The server's address.

        Raises:
            ConfigurationError: The server does not support the transport.
            ServiceError: The server does not answer.
        """
        return

    @abstractmethod
    def send(self, version: int, weights: Any, servers: EngineServers) -> None:
        """Send weights to all servers at once; called in the trainer's thread.

        Args:
            version: Version number of the weights.
            weights: A module, a mapping or an iterable of names and tensors; or an ``Adapter``.
            servers: Servers that need the weights.

        Raises:
            ServiceError: A server refused the weights, or no server answers; if the attribute ``cause`` of the error is
                not empty, another attempt may succeed.
        """

    @abstractmethod
    async def restore(self, server: Server) -> None:
        """Send the newest weights to a server that has come back; called in the event loop of the servers' client.

        Raises:
            ServiceError: The weights are not available.
        """

    def served_as(self, model: str, version: int) -> str:
        """Return the model name for requests to a version of the weights, given the name of the served model.

        By default every version has the name of the served model, since a weight sync changes that model's weights.
        """
        return model

    def close(self) -> None:
        """Remove the weights that were stored for servers that restart."""
        if self._kept is not None:
            self._kept.remove()
