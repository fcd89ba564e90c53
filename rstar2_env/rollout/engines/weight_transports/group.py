"""``GroupTransport``: broadcasts weights to the servers' workers through vLLM's own interface for weight transfers.

One process group contains this process and every worker of every server; all workers receive each bucket at once, over
NCCL or RCCL on accelerators (``nccl``), over gloo on CPUs (``gloo``). Requests in flight are paused meanwhile, and
continue with the new weights. If a folder is set, the weights are also written there, for servers that restart;
otherwise, a server that restarts gets no requests before the next weight sync.

If a server dies during a weight sync, the sync is aborted: no server gets requests until another attempt has sent the
weights to all remaining servers, in a new group. Not covered: workers that wait over NCCL in a broadcast from a trainer
that died; NCCL never ends this wait, so such servers must be restarted.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from itertools import accumulate
from typing import Any
from urllib.parse import urlsplit

import torch
from torch import Tensor

from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.core.version import at_least
from rstar2_env.rollout.engines.checkpoint_weights import named_weights
from rstar2_env.rollout.engines.vllm_server_fleet import Server
from rstar2_env.rollout.engines.weight_transports.base import Transport
from rstar2_env.rollout.engines.weight_transports.buckets import Bucket, buckets
from rstar2_env.rollout.engines.weight_transports.gloo import GlooGroup, own_address
from rstar2_env.rollout.engines.weight_transports.nccl import LEAST_VLLM, NcclGroup
from rstar2_env.rollout.engines.weight_transports.server_access import EngineServers
from rstar2_env.rollout.engines.weight_transports.settings import TransportSettings

_JOIN_S = 120.0
"""Seconds that the members of a new process group wait for one another."""


class GroupTransport(Transport):
    """Broadcasts weights in a process group of the trainer and all workers of the servers.

    Args:
        setting: Settings of the engine.
    """

    def __init__(self, setting: TransportSettings) -> None:
        super().__init__(setting)
        self._group: GlooGroup | NcclGroup | None = None
        self._members: list[tuple[str, int]] = []
        self._sent: int | None = None
        self._cut = False

    async def check(self, base: str) -> None:
        """Check that a server's vLLM is new enough and runs in development mode.

        Raises:
            ConfigurationError: vLLM is too old, or not in development mode; the message names its version.
            ServiceError: The server does not answer.
        """
        found = await self._ask_or_none(base, "/version")
        version = str(found.get("version", "")) if isinstance(found, Mapping) else ""
        if not at_least(version, LEAST_VLLM):
            raise ConfigurationError(
                f"transport='group' needs vLLM {LEAST_VLLM} or newer on every server, but {base} reports "
                f"{f'version {version}' if version else 'no version'}: update vLLM there, or choose "
                "transport='folder'."
            )
        if await self._ask_or_none(base, "/weight_info") is None:
            raise ConfigurationError(
                f"The server {base} (vLLM {version}) does not have the route /weight_info, which transport='group' "
                "needs: start it with "
                'VLLM_SERVER_DEV_MODE=1 and --weight-transfer-config \'{"backend": "nccl"}\'.'
            )

    async def _ask_or_none(self, base: str, path: str) -> Any:
        """Return the answer to a GET request; ``None`` if the server does not have the route."""
        try:
            return await self._setting.http.ask("GET", base, path, retries=0)
        except ServiceError as error:
            if error.cause:
                raise
            return None

    def send(self, version: int, weights: Any, servers: EngineServers) -> None:
        """Broadcast weights to all servers; raises the errors of ``Transport.send``."""
        with ExitStack() as done, servers.paused(version):
            pairs = named_weights(weights)
            if self._kept is not None:
                pairs = self._kept.writing(pairs, done.enter_context(self._kept.new(version)))
            members = servers.alive()
            try:
                self._deliver(version, pairs, members, servers)
                if self._kept is not None:
                    self._kept.commit(version)
            except BaseException as error:
                # Some servers may have half of the new weights, so none may answer before it has all of them.
                self._cut = True
                self._leave()
                servers.exclude(members, f"the weight sync of version {version} was aborted")
                if isinstance(error, ServiceError):
                    text = f"The weight sync of version {version} was aborted: {error}"
                    raise ServiceError(text, cause=error.cause) from error
                raise
            self._sent, self._cut = version, False

    async def restore(self, server: Server) -> None:
        """After a server has come back, order it to read the newest weights from the folder."""
        version = self._setting.version()
        found = await self._setting.http.ask("GET", server.base, "/weight_info", retries=0)
        label = found.get("weight_version") if isinstance(found, Mapping) else None
        if label == self._label(version) and not self._cut:
            return
        if self._sent is None and not version and not self._cut:
            return  # all servers still have their initial weights
        if self._kept is not None and not self._cut:
            await self._kept.reload(server)
            named = {"new_version": self._label(version)}
            await self._setting.http.ask("POST", server.base, "/update_weight_version", named, retries=0)
            return
        raise ServiceError("This server has older weights, and receives new ones at the next weight sync.")

    def close(self) -> None:
        """Leave the process group, and remove the weights that were stored for restarting servers."""
        self._leave()
        super().close()

    def _deliver(
        self, version: int, weights: Iterable[tuple[str, Tensor]], members: list[Server], servers: EngineServers
    ) -> None:
        def order(path: str, body: Any = None) -> None:
            self._whole(servers.post(members, path, body, timeout_s=self._setting.timeout_s), members)

        order("/pause?mode=keep")
        self._join(members, servers)
        order("/start_weight_update")
        assert self._group is not None
        receiving: Future[list[Server]] | None = None
        for bucket in buckets(weights, self._setting.bucket_bytes, _device()):
            if receiving is not None:
                self._whole(receiving, members)
            # The servers load this bucket while the next one is gathered.
            body = {"update_info": _metadata(bucket)}
            receiving = servers.post(members, "/update_weights", body, timeout_s=self._setting.timeout_s)
            try:
                self._group.broadcast(bucket.data, receiving)
            except RuntimeError as error:
                raise ServiceError(f"a server that receives weights was lost: {error}", cause="lost") from error
        if receiving is not None:
            self._whole(receiving, members)
        order("/finish_weight_update", {"weight_version": self._label(version)})
        order("/resume")

    def _whole(self, asked: Future[list[Server]], members: list[Server]) -> None:
        """Wait for the requests ``asked`` (see ``EngineServers.post``); raise an error if a member was lost."""
        done = asked.result()
        missing = [server.base for server in members if server not in done]
        if missing:
            raise ServiceError(f"A server was lost while it received weights: {', '.join(missing)}.", cause="lost")

    def _join(self, members: list[Server], servers: EngineServers) -> None:
        """Create a process group of ``members`` unless it exists.

        Before that, end the weight updates that a failed sync left open on the servers.
        """
        named = [(server.base, server.losses) for server in members]
        if self._group is not None and named == self._members:
            return
        self._leave()
        timeout_s = self._setting.timeout_s
        # An open session cannot be opened again, and a failed one is closed while its layers still wait for weights.
        # Opening it if possible and then closing it restores the initial state in both cases.
        for path in ("/start_weight_update", "/finish_weight_update"):
            for server in members:
                with suppress(ServiceError):
                    servers.post([server], path, timeout_s=timeout_s).result()
        counts = [int(servers.get(server, "/get_world_size")["world_size"]) for server in members]
        offsets = dict(zip((server.base for server in members), accumulate([1, *counts[:-1]]), strict=True))
        parts = urlsplit(members[0].base)
        address = self._setting.address or own_address(parts.hostname or "127.0.0.1", parts.port or 80)
        listener = socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
        port, size = listener.getsockname()[1], 1 + sum(counts)
        on_accelerator = _device().type == "cuda"
        with listener:

            def join(server: Server) -> dict[str, Any]:
                info = {"master_address": address, "master_port": port, "world_size": size}
                most = {"packed": True, "packed_buffer_size_bytes": self._setting.bucket_bytes, "packed_num_buffers": 1}
                own = most if on_accelerator else {"timeout_s": timeout_s}
                return {"init_info": {**info, "rank_offset": offsets[server.base], **own}}

            joining = servers.post(members, "/init_weight_transfer_engine", join, timeout_s=_JOIN_S)
            try:
                if on_accelerator:
                    listener.close()  # vLLM listens itself
                    self._group = NcclGroup(address, port, size)
                else:
                    self._group = GlooGroup(address, port, 0, size, timeout_s=_JOIN_S, listener=listener)
            except RuntimeError as error:
                if joining.done():
                    joining.result()  # its error is more specific
                raise ServiceError(
                    f"the servers could not connect to receive weights: {error}", cause="lost"
                ) from error
        self._whole(joining, members)
        self._members = named

    def _leave(self) -> None:
        group, self._group, self._members = self._group, None, []
        if group is not None:
            group.close()

    def _label(self, version: int) -> str:
        return f"{self._setting.run}-{version}"


def _metadata(bucket: Bucket) -> dict[str, Any]:
    precisions = [str(dtype).removeprefix("torch.") for dtype in bucket.dtypes]
    return {"names": bucket.names, "dtype_names": precisions, "shapes": bucket.shapes}


def _device() -> torch.device:
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")
