"""``FolderTransport``: sends weights through a folder that trainer and servers see under the same path.

The weights are written once, in files of one bucket, and every server reads them. The newest weights stay there until
the engine is closed, for servers that restart and for the other processes of a run. A tmpfs is sufficient on one
machine.
"""

from __future__ import annotations

from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout.engines.transports.base import Transport
from rstar2_env.rollout.engines.transports.servers import EngineServers
from rstar2_env.rollout.engines.transports.stored_weights import reload_from
from rstar2_env.rollout.engines.vllm_server_fleet import Server
from rstar2_env.rollout.engines.weights import named_weights


class FolderTransport(Transport):
    """Sends weights through a folder."""

    def send(self, version: int, weights: Any, servers: EngineServers) -> None:
        """See ``Transport``; requests continue with the old weights while the new ones are written.

        Raises:
            ConfigurationError: There is no folder.
            ServiceError: A server refused the weights, or no server answers.
        """
        kept = self._kept
        if kept is None:
            raise ConfigurationError(
                "transport='folder' needs weights_dir=, a folder that the servers see under the same path (/dev/shm on "
                "one machine); start them with VLLM_SERVER_DEV_MODE=1. Or choose transport='group'."
            )
        with kept.new(version) as part:
            for _ in kept.writing(named_weights(weights), part):
                pass
            newest = kept.commit(version)
            with servers.paused(version):
                servers.post(servers.up(), "/collective_rpc", reload_from(newest)).result()
                # Servers that were lost meanwhile get the new weights when they are readmitted.
                servers.up()

    async def restore(self, server: Server) -> None:
        """See ``Transport``."""
        if self._kept is not None:
            await self._kept.reload(server)
