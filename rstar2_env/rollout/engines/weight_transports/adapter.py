"""``AdapterTransport``: sends only LoRA adapters, through a folder: megabytes instead of a merged model's gigabytes.

Every version is a separately named adapter on the servers, so a request in flight ends with the weights that it began
with. The servers hold the base model, and must be started with ``--enable-lora --max-lora-rank RANK --max-loras 2`` and
``VLLM_ALLOW_RUNTIME_LORA_UPDATING=1``. The folder keeps the newest adapter, for servers that restart, and the adapters
of requests in flight: a server that has no room for another adapter drops the oldest one when it loads the newest one,
and reads the oldest one again for the requests that still use it. If the file of the oldest one were missing, the
server would exit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.rollout.engines.vllm_server_fleet import Server
from rstar2_env.rollout.engines.weight_transports.base import Takes, Transport
from rstar2_env.rollout.engines.weight_transports.server_access import EngineServers
from rstar2_env.rollout.engines.weight_transports.settings import TransportSettings
from rstar2_env.rollout.engines.weight_transports.stored_weights import StoredWeights

_FLAGS = "--enable-lora --max-lora-rank RANK --max-loras 2"


@dataclass(frozen=True)
class Adapter:
    """A LoRA adapter to send to servers.

    Attributes:
        config: Configuration of the adapter, a ``peft.LoraConfig``.
        tensors: Pairs of name and tensor; the names are those of a saved adapter.
    """

    config: Any
    tensors: Iterable[tuple[str, Tensor]]


class AdapterTransport(Transport):
    """Sends the LoRA adapter of each version through a folder that trainer and servers share.

    Args:
        setting: Settings of the engine.

    Raises:
        ConfigurationError: The settings do not name a folder.
    """

    takes: ClassVar[Takes] = "adapter"

    def __init__(self, setting: TransportSettings) -> None:
        if setting.folder is None:
            raise ConfigurationError(
                "transport='adapter' needs the option weights_dir=, a folder that the trainer and the servers can "
                "access under the same path."
            )
        super().__init__(setting)
        self._kept: StoredWeights = StoredWeights(setting, setting.folder, self.takes)
        self._loaded: list[str] = []

    async def check(self, base: str) -> None:
        """Check that a server accepts adapters and has room for two of them; a server that reports no options passes.

        Raises:
            ConfigurationError: The server has room for only one adapter, or does not accept adapters.
        """
        try:
            found = await self._setting.http.ask("GET", base, "/server_info?config_format=json", retries=0)
            lora = found["vllm_config"]["lora_config"]
        except (ServiceError, KeyError, TypeError):
            return  # the server does not report its options
        if lora is None or int(lora.get("max_loras") or 1) < 2:
            raise ConfigurationError(
                f"transport='adapter' needs two adapters at the same time on the server {base}, the "
                f"newest and the one that running requests use: start the server with {_FLAGS}."
            )

    def send(self, version: int, weights: Any, servers: EngineServers) -> None:
        """Write an adapter to the folder and make every server load it.

        Raises:
            ConfigurationError: The policy has no adapter, or the servers do not accept adapters.
            ServiceError: A server refused the adapter, or no server answers.
        """
        from safetensors.torch import save_file

        if not isinstance(weights, Adapter):
            raise ConfigurationError(
                "transport='adapter' sends LoRA adapters, but all weights of the model are trained: set "
                "lora_rank, or choose another transport."
            )
        # Until this sync, new requests use the previous adapter; a long turn may still use an earlier one.
        used = {*self._loaded[-1:], *servers.adapters(servers.up())}
        with self._kept.new(version, keep=used) as part:
            weights.config.save_pretrained(str(part))
            tensors = {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in weights.tensors}
            save_file(tensors, str(part / "adapter_model.safetensors"))
            newest = self._kept.commit(version)
            name = newest.name
            with servers.paused(version):
                up = servers.up()
                self._drop(name, up, servers)  # an earlier run may have loaded it on the same server
                try:
                    order = {"lora_name": name, "lora_path": str(newest)}
                    servers.post(up, "/v1/load_lora_adapter", order).result()
                except ServiceError as error:
                    raise _refused(error) from error
                servers.up()
            for old in self._loaded:
                if old not in used:
                    self._drop(old, servers.up(), servers)
            self._loaded = [*(old for old in self._loaded if old in used and old != name), name]

    async def restore(self, server: Server) -> None:
        """After a server has come back, order it to load the newest adapter."""
        newest = self._kept.newest()
        if newest is None:
            return
        models = await self._setting.http.ask("GET", server.base, "/v1/models", retries=0)
        listed = models.get("data", []) if isinstance(models, Mapping) else []
        if newest.name not in [one.get("id") for one in listed]:
            order = {"lora_name": newest.name, "lora_path": str(newest)}
            await self._setting.http.ask("POST", server.base, "/v1/load_lora_adapter", order, retries=0)

    def served_as(self, model: str, version: int) -> str:
        """Return the model name for requests to a version: the name of that version's adapter."""
        return self._kept.path(version).name

    @staticmethod
    def _drop(name: str, up: list[Server], servers: EngineServers) -> None:
        for server in up:
            try:
                servers.post([server], "/v1/unload_lora_adapter", {"lora_name": name}, retries=0).result()
            except ServiceError:
                continue  # the server does not have the adapter


def _refused(error: ServiceError) -> Exception:
    if "404" in str(error):
        return ConfigurationError(
            f"A server does not accept adapters: start it with {_FLAGS} and "
            f"VLLM_ALLOW_RUNTIME_LORA_UPDATING=1, or choose transport='folder'. {error}"
        )
    return error


def adapter_state(policy: Any) -> dict[str, Tensor]:
    """Return the tensors of a policy's LoRA adapter by their names in a saved adapter; shards are not gathered."""
    from peft import get_peft_model_state_dict

    own = policy.state_dict(keep_vars=True)
    state: dict[str, Tensor] = get_peft_model_state_dict(policy, state_dict=own, save_embedding_layers=False)
    return state
