"""``Spread``: the number of devices that a stage uses, read from its launch command.

Covered: the runner's own process, ``rstar2 launch``, ``torchrun`` and configurations of ``accelerate``. Not covered:
whether the machine has that many devices.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.files.config_file import read_mapping

from ..launch.devices import read_devices
from .places import HOME


@dataclass(frozen=True, slots=True)
class Spread:
    """The number of devices that a stage uses.

    Attributes:
        train: Number of training devices; ``None`` if the launcher does not specify it.
        serve: Number of additional devices for servers.
        tensor_parallel: Number of devices per server.
        sharding: The sharding of the training processes, if the launcher specifies it.
    """

    train: int | None = 1
    serve: int = 0
    tensor_parallel: int = 1
    sharding: str | None = None


def spread_of(launch: str | None) -> Spread:
    """Read the number of devices from a launcher's command.

    Args:
        launch: The option ``launch`` of a stage; ``None`` means the runner's own process on one device.

    Raises:
        ConfigurationError: A device does not exist, or a file cannot be read.
    """
    words = given_words(shlex.split(launch or "python"), HOME)
    options = _options(words)
    if words[:2] == ["rstar2", "launch"]:
        train, serve = read_devices(options.get("train", "0")), options.get("serve")
        serving = 0 if serve is None else len(read_devices(serve))
        several = len(train) > 1 and "cpu" not in options
        return Spread(len(train), serving, _whole(options, "tensor_parallel"), "fsdp2" if several else None)
    files = [word for word in words if Path(word).suffix in (".yaml", ".yml") and Path(word).is_file()]
    found = _configured(read_mapping(files[0])) if files else Spread(1)
    if "num_processes" in options:
        return replace(found, train=_whole(options, "num_processes"))
    if files:
        return found
    if "nproc_per_node" in options:
        return Spread(_whole(options, "nproc_per_node") * _whole(options, "nnodes"))
    return Spread(1 if words[:1] == ["python"] else None)


def given_words(words: Sequence[str], configs: Path) -> list[str]:
    """Return the arguments of a launcher, with names of configuration files replaced by paths.

    Args:
        words: The launcher's command, split into words.
        configs: The folder that contains the folder ``configs``.
    """
    return [str(configs / word) if word.startswith("configs/") else word for word in words]


def _options(words: list[str]) -> dict[str, str]:
    """Parse options written as ``--name value`` or ``--name=value``; dashes in names become ``_``."""
    found = {}
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word.startswith("--") and len(word) > 2:
            name, equals, value = word[2:].partition("=")
            found[name.replace("-", "_")] = value if equals else after
    return found


def _whole(options: dict[str, str], name: str) -> int:
    written = options.get(name, "1")
    if not written.isdecimal() or int(written) < 1:
        raise ConfigurationError(
            f"In the option launch, --{name} must be a whole number of at least 1, because the cost of "
            f"the stage depends on it; got {written!r}.",
            option="launch",
        )
    return int(written)


def _configured(config: dict[str, Any]) -> Spread:
    """Read the number of devices from a configuration of accelerate."""
    kind = str(config.get("distributed_type", "NO"))
    sharding = {"FSDP": "fsdp2", "DEEPSPEED": f"zero{(config.get('deepspeed_config') or {}).get('zero_stage', 2)}"}
    processes = _whole({"num_processes": str(config.get("num_processes", 1))}, "num_processes")
    return Spread(processes, sharding=sharding.get(kind))
