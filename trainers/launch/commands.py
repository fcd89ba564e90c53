"""The commands of a launch: a server for each engine, and the trainer, on one device or under ``torchrun``."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from .devices import Devices

RSTAR2 = ("-m", "rstar2_env.cli")
"""This package's command line, for an interpreter."""
WORKER = "rstar2_env.rollout.engines.vllm_worker.FullLogprobs"
_SERVER = {
    # The first model runner gives every token's log-probability under top-p and top-k.
    "VLLM_USE_V2_MODEL_RUNNER": "0",
    "VLLM_NO_USAGE_STATS": "1",
}
# New weights, and those log-probabilities, are asked for by calls that vLLM serves to developers alone.
_DEVELOPER = {"VLLM_SERVER_DEV_MODE": "1"}


@dataclass(frozen=True, slots=True)
class Command:
    """A process to start.

    Attributes:
        name: What it is called in messages, and its log.
        words: Program and arguments.
        devices: What it runs on.
        variables: Variables of its own, devices aside.
        url: Address that a server answers at; empty for the trainer.
        node: Name of the machine that it runs on; empty for this one.
    """

    name: str
    words: Sequence[str]
    devices: Devices
    variables: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    node: str = ""

    def environment(self, outer: Mapping[str, str]) -> dict[str, str]:
        """All variables that it gets beside those of this process."""
        return {**self.devices.environment(outer), **self.variables}

    def shown(self, outer: Mapping[str, str]) -> str:
        """The command as a line for a shell."""
        cores = ["taskset", "-c", str(self.devices)] if self.devices.cores else []
        given = [f"{name}={shlex.quote(value)}" for name, value in self.environment(outer).items()]
        return " ".join([*given, shlex.join([*cores, *self.words])])

    def on(self, node: str, launch: str, outer: Mapping[str, str]) -> Command:
        """The same command on another machine of the same kind.

        Args:
            node: The machine's name.
            launch: What runs a command there, in which ``{node}`` is replaced: ``srun --nodelist={node}``.
            outer: All variables of this process.
        """
        start = [_filled(word, {"node": node}) for word in shlex.split(launch)]
        # As words, since what runs it may set variables of its own, such as those of the devices.
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
) -> Command:
    """A server of a model.

    Args:
        number: Its number, from 0.
        model: The model.
        devices: Its devices; of more than one, each holds a part of every matrix (tensor parallelism).
        port: Where it listens.
        host: On which address.
        at: Under which name it is asked; empty for ``host``.
        program: Another program than vLLM of this interpreter, in which ``{model}``, ``{host}``, ``{port}`` and
            ``{size}`` are replaced: a container, say.
        more: Further arguments.
        developer: Whether it takes the calls of developers, with which anyone who can reach it controls it.
    """
    if program is None:
        words = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model]
        words += ["--host", host, "--port", str(port), "--logprobs-mode", "processed_logprobs"]
        words += ["--worker-extension-cls", WORKER]
        if devices.cores:
            # After a prompt that is computed in parts, a CPU cannot draw with a seed of the request's own.
            words += ["--no-enable-chunked-prefill"]
        elif len(devices) > 1:
            words += ["--tensor-parallel-size", str(len(devices))]
    else:
        given = {"model": model, "host": host, "port": str(port), "size": str(len(devices))}
        words = [_filled(word, given) for word in shlex.split(program)]
    variables = {**(_DEVELOPER if developer else {}), **_SERVER}
    return Command(f"server-{number}", [*words, *more], devices, variables, f"http://{at or host}:{port}")


def trainer(words: Sequence[str], devices: Devices, processes: int, settings: Mapping[str, object]) -> Command:
    """The trainer.

    Args:
        words: What ``rstar2 train`` is given.
        devices: Its devices.
        processes: Its processes; more than one are started by ``torchrun``.
        settings: Options that go over the words.
    """
    start = [sys.executable]
    if processes > 1:
        start += ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
    given = [word for name, value in settings.items() for word in ("--set", f"{name}={_text(value)}")]
    return Command("trainer", [*start, *RSTAR2, "train", *words, *given], devices)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _filled(word: str, given: Mapping[str, str]) -> str:
    for name, value in given.items():
        word = word.replace(f"{{{name}}}", value)
    return word
