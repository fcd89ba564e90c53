"""The commands of a launch: one server per engine, and the trainer, on one device or with ``torchrun``."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from .devices import Devices

RSTAR2 = ("-m", "rstar2_env.cli")
"""Arguments with which a Python interpreter runs this package's command line."""
WORKER = "rstar2_env.rollout.engines.vllm_worker.FullLogprobs"
_SERVER = {"VLLM_NO_USAGE_STATS": "1"}
# Only vLLM's V1 model runner returns log-probabilities over all tokens despite top-p and top-k. The V2 runner, vLLM's
# default for most models, draws the tokens of all requests in one kernel; the V1 runner draws request by request.
_CUTS = {"VLLM_USE_V2_MODEL_RUNNER": "0"}
# Weight syncs and those log-probabilities need endpoints that vLLM enables only in developer mode.
_DEVELOPER = {"VLLM_SERVER_DEV_MODE": "1"}


@dataclass(frozen=True, slots=True)
class LaunchCommand:
    """The command of a process that a launch starts: a server or the trainer.

    Attributes:
        name: Name of the process in messages, and of its log file.
        words: The program and its arguments.
        devices: The devices that the process runs on.
        variables: Further environment variables; the variables that select devices are not among them.
        url: Address of a server; empty for the trainer.
        node: Name of the machine that the process runs on; empty for this machine.
    """

    name: str
    words: Sequence[str]
    devices: Devices
    variables: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    node: str = ""

    def environment(self, outer: Mapping[str, str]) -> dict[str, str]:
        """Return the environment variables to set for the command, including the variables that select its devices.

        Args:
            outer: The environment variables of this process, on which the device variables of the command depend.
        """
        return {**self.devices.environment(outer), **self.variables}

    def shown(self, outer: Mapping[str, str]) -> str:
        """Return the command as a line for a shell, with its environment variables.

        Args:
            outer: The environment variables of this process, on which the device variables of the command depend.
        """
        cores = ["taskset", "-c", str(self.devices)] if self.devices.cores else []
        given = [f"{name}={shlex.quote(value)}" for name, value in self.environment(outer).items()]
        return " ".join([*given, shlex.join([*cores, *self.words])])

    def on(self, node: str, launch: str, outer: Mapping[str, str]) -> LaunchCommand:
        """Return the same command for another machine with the same hardware.

        Args:
            node: The machine's name.
            launch: Command that runs another command on that machine, such as ``srun --nodelist={node}``; ``{node}`` is
                replaced.
            outer: The environment variables of this process, on which the device variables of the command depend.
        """
        start = [_filled(word, {"node": node}) for word in shlex.split(launch)]
        # As arguments of env, since the launcher may set variables itself, such as those for devices.
        given = [f"{name}={value}" for name, value in self.environment(outer).items()]
        return replace(self, words=[*start, "env", *given, *self.words], node=node)


def server(
    number: int,
    model: str,
    devices: Devices,
    port: int,
    *,
    host: str = "127.0.0.1",
    at: str = "",
    program: str | None = None,
    more: Sequence[str] = (),
    developer: bool = True,
    cuts: bool = False,
) -> LaunchCommand:
    """Return the command of a model server.

    Args:
        number: Number of the server, from 0.
        model: Folder or hub name of the model to serve.
        devices: The server's devices; more than one are used with tensor parallelism.
        port: Port to listen on.
        host: Address to listen on.
        at: Host name in the server's URL; if empty, ``host`` is used.
        program: Program to use instead of this interpreter's vLLM, such as a container; ``{model}``, ``{host}``,
            ``{port}`` and ``{size}`` (number of devices) are replaced. ``None`` runs vLLM.
        more: Further arguments of the program.
        developer: Whether to enable the developer endpoints, which give every client control over the server.
        cuts: Whether requests use top-p or top-k sampling, which requires vLLM's V1 model runner.
    """
    if program is None:
        words = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model]
        words += ["--host", host, "--port", str(port), "--logprobs-mode", "processed_logprobs"]
        words += ["--worker-extension-cls", WORKER]
        if devices.cores:
            # With chunked prefill, vLLM on a CPU does not support a seed per request.
            words += ["--no-enable-chunked-prefill"]
        elif len(devices) > 1:
            words += ["--tensor-parallel-size", str(len(devices))]
    else:
        given = {"model": model, "host": host, "port": str(port), "size": str(len(devices))}
        words = [_filled(word, given) for word in shlex.split(program)]
    variables = {**(_DEVELOPER if developer else {}), **(_CUTS if cuts else {}), **_SERVER}
    return LaunchCommand(f"server-{number}", [*words, *more], devices, variables, f"http://{at or host}:{port}")


def trainer(words: Sequence[str], devices: Devices, processes: int, settings: Mapping[str, object]) -> LaunchCommand:
    """Return the command of the trainer.

    Args:
        words: Arguments of ``rstar2 train``.
        devices: The trainer's devices.
        processes: Number of processes; more than one are started with ``torchrun``.
        settings: Options that override the arguments.
    """
    start = [sys.executable]
    if processes > 1:
        start += ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
    given = [word for name, value in settings.items() for word in ("--set", f"{name}={_text(value)}")]
    return LaunchCommand("trainer", [*start, *RSTAR2, "train", *words, *given], devices)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _filled(word: str, given: Mapping[str, str]) -> str:
    for name, value in given.items():
        word = word.replace(f"{{{name}}}", value)
    return word
