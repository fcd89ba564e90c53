"""The commands of a launch: a server for each engine, and the trainer, on one device or under ``torchrun``."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .devices import Devices

RSTAR2 = ("-m", "rstar2_env.cli")
"""This package's command line, for an interpreter."""
WORKER = "rstar2_env.rollout.engines.vllm_worker.FullLogprobs"
_SERVER = {
    # New weights come in by a call that vLLM serves to developers alone; the first model runner gives every token's
    # log-probability under top-p and top-k.
    "VLLM_SERVER_DEV_MODE": "1",
    "VLLM_USE_V2_MODEL_RUNNER": "0",
    "VLLM_NO_USAGE_STATS": "1",
}


@dataclass(frozen=True, slots=True)
class Command:
    """A process to start.

    Attributes:
        name: What it is called in messages, and its log.
        words: Program and arguments.
        devices: What it runs on.
        variables: Variables of its own, devices aside.
        url: Address that a server answers at; empty for the trainer.
    """

    name: str
    words: Sequence[str]
    devices: Devices
    variables: Mapping[str, str] = field(default_factory=dict)
    url: str = ""

    def environment(self, outer: Mapping[str, str]) -> dict[str, str]:
        """All variables that it gets beside those of this process."""
        return {**self.devices.environment(outer), **self.variables}

    def shown(self, outer: Mapping[str, str]) -> str:
        """The command as a line for a shell."""
        cores = ["taskset", "-c", str(self.devices)] if self.devices.cores else []
        given = [f"{name}={shlex.quote(value)}" for name, value in self.environment(outer).items()]
        return " ".join([*given, shlex.join([*cores, *self.words])])


def server(
    number: int,
    model: str,
    devices: Devices,
    port: int,
    *,
    host: str = "127.0.0.1",
    program: str | None = None,
    more: Sequence[str] = (),
) -> Command:
    """A server of a model.

    Args:
        number: Its number, from 0.
        model: The model.
        devices: Its devices; of more than one, each holds a part of every matrix (tensor parallelism).
        port: Where it listens.
        host: On which address.
        program: Another program than vLLM of this interpreter, in which ``{model}``, ``{host}``, ``{port}`` and
            ``{size}`` are replaced: a container, say.
        more: Further arguments.
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
    return Command(f"server-{number}", [*words, *more], devices, _SERVER, f"http://{host}:{port}")


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
