"""``FolderTransport``: sends weights through a folder that trainer and servers see under the same path.

The weights are written once, one file per bucket, and every server reads them. With a folder on each serving machine
(``relay``), one server of each machine copies them, and the servers of the machine read the copy: then each byte leaves
the shared folder once for each machine, not once for each server. The newest weights stay in the shared folder until
the engine is closed, for servers that restart and for the other processes of a run. A tmpfs is sufficient on one
machine.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.rollout.engines.checkpoint_weights import named_weights
from rstar2_env.rollout.engines.vllm_server_fleet import Server
from rstar2_env.rollout.engines.weight_transports.base import Transport
from rstar2_env.rollout.engines.weight_transports.server_access import EngineServers
from rstar2_env.rollout.engines.weight_transports.settings import TransportSettings
from rstar2_env.rollout.engines.weight_transports.stored_weights import reload_from

_EXTENSION = "--worker-extension-cls rstar2_env.rollout.engines.vllm_worker.FullLogprobs"
_DROP_S = 10.0
"""Maximum seconds that a server may take to remove its copy of the weights when the engine is closed."""


class FolderTransport(Transport):
    """Sends weights through a folder that trainer and servers share.

    Args:
        setting: Settings of the engine.

    Raises:
        ConfigurationError: ``relay`` is set, but there is no shared folder to copy from.
    """

    def __init__(self, setting: TransportSettings) -> None:
        super().__init__(setting)
        if setting.relay is not None and setting.folder is None:
            raise ConfigurationError(
                "The option relay_dir= needs weights_dir=, the shared folder from which the weights are copied."
            )
        self._copies: dict[str, str] = {}
        self._newest: Path | None = None

    async def check(self, base: str) -> None:
        """If the setting ``relay`` names a folder, check that the server can copy weights into that folder.

        Raises:
            ConfigurationError: The server cannot copy into the folder, or was started without the worker extension.
            ServiceError: The server does not answer.
        """
        relay = self._setting.relay
        if relay is None:
            return
        order = {"method": "can_copy_weights", "kwargs": {"into": str(relay)}}
        try:
            answer = await self._setting.http.ask("POST", base, "/collective_rpc", order, retries=0)
        except ServiceError as error:
            if error.cause in ("lost", "late"):
                raise
            raise ConfigurationError(
                f"The server {base} cannot copy weights into relay_dir: start it with "
                f"VLLM_SERVER_DEV_MODE=1 and {_EXTENSION}, or remove relay_dir. {error}"
            ) from error
        if not all(result["can"] for result in answer["results"]):
            raise ConfigurationError(
                f"The server {base} cannot write into the folder relay_dir={relay} on its machine: choose "
                "another folder."
            )

    def send(self, version: int, weights: Any, servers: EngineServers) -> None:
        """Write weights to the folder, and make every server load them; new requests wait while the servers load.

        Raises:
            ConfigurationError: The settings do not name a folder.
            ServiceError: A server refused the weights, or no server answers.
        """
        kept = self._kept
        if kept is None:
            raise ConfigurationError(
                "transport='folder' needs the option weights_dir=, a folder that the trainer and the servers can "
                "access under the same path (/dev/shm on one machine); start the servers with "
                "VLLM_SERVER_DEV_MODE=1. Or choose transport='group'."
            )
        with kept.new(version) as part:
            for _ in kept.writing(named_weights(weights), part):
                pass
            newest = self._newest = kept.commit(version)
            self._copy(newest, servers)

            def order(server: Server) -> dict[str, object]:
                relay = self._setting.relay
                copied = relay is not None and _machine(server) in self._copies
                return reload_from(Path(str(relay), newest.name) if copied else newest)

            with servers.paused(version):
                servers.post(servers.up(), "/collective_rpc", order).result()
                # Servers that were lost meanwhile get the new weights when they are readmitted.
                servers.up()

    async def restore(self, server: Server) -> None:
        """After a server has come back, order it to read the newest weights."""
        if self._kept is not None:
            await self._kept.reload(server)

    def close(self) -> None:
        """Remove the stored weights, and their copies on the machines that can be reached."""
        http, relay, newest = self._setting.http, self._setting.relay, self._newest
        for base in self._copies.values():
            order = {"method": "drop_weights", "kwargs": {"source": str(newest), "into": str(relay)}}
            with suppress(ServiceError):
                http.run_now(http.ask("POST", base, "/collective_rpc", order, retries=0, timeout_s=_DROP_S))
        self._copies = {}
        super().close()

    def _copy(self, newest: Path, servers: EngineServers) -> None:
        """Make one server of each machine copy the newest weights; if it is lost, ask another server there."""
        self._copies = {}
        if self._setting.relay is None:
            return
        order = {
            "method": "copy_weights",
            "kwargs": {"source": str(newest), "into": str(self._setting.relay)},
        }
        while relays := {_machine(one): one for one in reversed(servers.up()) if _machine(one) not in self._copies}:
            done = servers.post(list(relays.values()), "/collective_rpc", order).result()
            self._copies |= {_machine(server): server.base for server in done}


def _machine(server: Server) -> str:
    """Return the name of a server's machine: the host in its address."""
    return urlsplit(server.base).hostname or server.base
