"""``Serve``: the vLLM servers that a stage starts for generation, and stops when it ends.

Covered: a server per device or per group of devices, on this machine or on every machine of a Slurm job; arguments that
make a server generate like the engine ``vllm`` with the options of the stage. Not covered: how servers are awaited and
restarted (``launch/servers.py``).
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.open_file_limit import raise_open_file_limit
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.evaluation.play.policy_crew import PolicyOptions

from ..launch.commands import LaunchCommand, server
from ..launch.devices import Devices, read_devices
from ..launch.servers import Servers, logged
from .base import Work
from .cost import SERVERS

IN_PROCESS = "vllm"
"""Name of the engine that generates in the runner's process; the servers replace this engine."""
_KEY = "VLLM_API_KEY"


@dataclass(frozen=True)
class Serve(CheckedOptions):
    """Servers of a stage's model; the option names are those of ``rstar2 launch``.

    Attributes:
        devices: Devices for servers on each machine: ``0-7``.
        tensor_parallel: Number of devices per server.
        cpu: Whether the devices are CPU cores.
        nodes: Number of machines; if more than one, the machines of the Slurm job in which the runner runs.
        launch: Command that starts a server on one of several machines; ``{node}`` is replaced by the machine's name.
        port: Port of the first server of a machine; the others use the following ports.
        host: Address on which servers listen; ``None`` means 127.0.0.1, or 0.0.0.0 with several machines; ``{node}``
            is replaced by the machine's name.
        server_options: Extra arguments for each server (``--max-num-batched-tokens 16384``).
        server_program: A server to use instead of this Python's vLLM; ``{model}``, ``{host}``, ``{port}`` and
            ``{size}`` are replaced. It receives only ``server_options`` as further arguments.
        start_timeout_s: Seconds within which every server must become ready.
        restarts: Maximum number of restarts of a server.
    """

    devices: str | int
    tensor_parallel: int = option(1, least=1)
    cpu: bool = False
    nodes: int = option(1, least=1)
    launch: str = "srun --overlap --nodes=1 --ntasks=1 --nodelist={node}"
    port: int = option(8001, least=1, most=65535)
    host: str | None = None
    server_options: str = ""
    server_program: str | None = None
    start_timeout_s: float = option(900.0, above=0, unit="seconds")
    restarts: int = option(3, least=0)

    def __post_init__(self) -> None:
        """Check every option.

        Raises:
            ConfigurationError: A value is invalid, or a device does not exist.
        """
        super().__post_init__()
        if self.cpu and self.nodes > 1:
            raise ConfigurationError(
                "Servers that run on CPU cores can run on one machine only: set serve.nodes to 1.", option="serve.cpu"
            )
        self.engines()

    def engines(self) -> list[Devices]:
        """Return the devices of each server of a machine.

        Raises:
            ConfigurationError: The devices cannot be parsed, or cannot be divided evenly among servers.
        """
        try:
            return read_devices(str(self.devices), cores=self.cpu).split(self.tensor_parallel)
        except ConfigurationError as error:
            raise ConfigurationError(str(error), option="serve.devices") from error

    @property
    def count(self) -> int:
        """Number of servers."""
        return self.nodes * len(self.engines())

    def commands(self, model: str, words: Sequence[str], *, cuts: bool = False) -> list[LaunchCommand]:
        """Return the command of every server.

        Args:
            model: Folder or hub name of the model to serve.
            words: Further arguments of vLLM.
            cuts: Whether requests truncate sampling with top-p or top-k.

        Raises:
            ConfigurationError: The machines of the job are unknown, or their number is not ``nodes``.
        """
        found: list[LaunchCommand] = []
        more = [*(words if self.server_program is None else ()), *shlex.split(self.server_options)]
        for node in _nodes(self.nodes) if self.nodes > 1 else [""]:
            host = self.host or ("0.0.0.0" if node else "127.0.0.1")
            for number, devices in enumerate(self.engines()):
                made = server(
                    len(found),
                    model,
                    devices,
                    self.port + number,
                    host=host.replace("{node}", node),
                    at=node,
                    program=self.server_program,
                    more=more,
                    developer=not node,
                    cuts=cuts,
                )
                found.append(made.on(node, self.launch, os.environ) if node else made)
        return found

    @contextmanager
    def serving(
        self, model: str, words: Sequence[str], work: Work, all_lost: Callable[[], None], *, cuts: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Start servers; once they are ready, yield the options with which the engine ``vllm-server`` uses them.

        Args:
            model: Folder or hub name of the model to serve.
            words: Further arguments of vLLM.
            work: The context of the stage; logs are written next to the stage's folder.
            all_lost: Called when no server is left.
            cuts: Whether requests truncate sampling with top-p or top-k.

        Raises:
            LaunchError: A server ended before it was ready or was not ready in time, or every server ended too often.
            ConfigurationError: The servers cannot be started.
        """
        commands = self.commands(model, words, cuts=cuts)
        raise_open_file_limit()  # since every concurrent episode has a connection
        running = logged(commands, work.folder.with_suffix(".launched"), work.inherited)
        with _key(), Servers(running, self.start_timeout_s, self.restarts, work.say).kept(all_lost):
            # The engine waits as long for a restart as for the first start.
            waits = {"start_timeout_s": self.start_timeout_s, "reconnect_timeout_s": self.start_timeout_s}
            yield {"base_urls": [one.url for one in commands], **waits}


def read_serve(written: Serve | str | int | None) -> Serve | None:
    """Read the option ``serve``; a text or number such as ``"0-7"`` means servers on these devices of this machine."""
    return Serve(written) if isinstance(written, (str, int)) else written


def check_engine(engine: str, options: Mapping[str, Any]) -> None:
    """Reject engines and options that cannot be combined with servers that the stage starts.

    Raises:
        ConfigurationError: The engine is not vLLM, or its options name servers or devices.
    """
    if engine not in (IN_PROCESS, SERVERS):
        raise ConfigurationError(
            f"The option serve starts vLLM servers, which requires engine: {IN_PROCESS}; got engine: {engine}.",
            option="engine",
        )
    for name, instead in _INSTEAD.items():
        if name in options:
            raise ConfigurationError(
                f"engine_options.{name} cannot be combined with the option serve: {instead}.", option="serve"
            )


_INSTEAD = {
    "base_urls": "serve sets the addresses of the servers that it starts",
    "tensor_parallel_size": "use its option tensor_parallel instead",
}


def check_whole(model: str) -> None:
    """Reject a LoRA adapter, since servers do not merge it, unlike vLLM in this process.

    Raises:
        ConfigurationError: The model is the folder of an adapter.
    """
    if (Path(model) / "adapter_config.json").is_file():
        raise ConfigurationError(
            f"{model} is a LoRA adapter, but the servers that this stage starts need a whole model. Write "
            f"one with `rstar2 export {model} --merge --out FOLDER`, or omit the option serve.",
            option="model",
        )


def words_of(engine_options: Mapping[str, Any], policy: PolicyOptions, *, cpu: bool) -> list[str]:
    """Return arguments of a vLLM server that make it generate like the engine ``vllm`` in this process.

    Args:
        engine_options: Options of the engine ``vllm``.
        policy: The loading options of the model.
        cpu: Whether the server runs on a CPU.
    """
    options = dict(engine_options)
    options.pop("sleep", None)  # a server that only generates does not need it
    if (size := options.pop("kv_cache_gib", None)) is not None:
        options["kv_cache_memory_bytes"] = round(float(size) * (1 << 30))
    options["max_num_seqs"] = options.pop("max_rows", policy.max_in_flight)
    # The weights of a run are saved in float32, which vLLM by default converts to float16.
    options.setdefault("dtype", policy.dtype if policy.dtype != "auto" else "float32" if cpu else "bfloat16")
    if policy.revision is not None:
        options.setdefault("revision", policy.revision)
    if policy.trust_remote_code:
        options.setdefault("trust_remote_code", True)
    words: list[str] = []
    for name, value in options.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif value is not None:
            words += [f"--{flag}", value if isinstance(value, str) else json.dumps(value)]
    return words


def _nodes(count: int) -> list[str]:
    """Return the names of this Slurm job's machines; the job must have ``count`` machines."""
    listed = os.environ.get("SLURM_JOB_NODELIST")
    if not listed:
        raise ConfigurationError(
            f"Servers on {count} machines require a Slurm job (salloc or sbatch), but this process does not run in a "
            "Slurm job: SLURM_JOB_NODELIST is not set.",
            option="serve.nodes",
        )
    try:
        asked = subprocess.run(["scontrol", "show", "hostnames", listed], capture_output=True, text=True, check=False)
    except OSError as error:
        raise ConfigurationError(
            "The machines of the Slurm job cannot be listed, because the program scontrol cannot be run: "
            f"{error.strerror}.",
            option="serve.nodes",
        ) from error
    names = asked.stdout.split()
    if len(names) != count:
        raise ConfigurationError(
            f"serve.nodes is {count}, but the Slurm job has {len(names)} machines "
            f"({' '.join(names) or asked.stderr.strip()}).",
            option="serve.nodes",
            value=str(len(names)) if names else None,
        )
    return names


@contextmanager
def _key() -> Iterator[None]:
    """Context manager that sets an API key for the servers that are started inside it, unless the user set a key."""
    if os.environ.get(_KEY):
        yield
        return
    os.environ[_KEY] = secrets.token_urlsafe()
    try:
        yield
    finally:
        del os.environ[_KEY]
