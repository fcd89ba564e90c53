"""The trainer's end of a process group over NCCL or RCCL, which vLLM opens and whose buckets its workers receive.

Not run on this project's machines, which have no accelerator: the order of calls is that of the group over gloo.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Any

import torch
from torch import Tensor

from rstar2_env.core.errors import MissingExtraError
from rstar2_env.rollout.engines.transports.gloo import check


class NcclGroup:
    """The trainer's end, on its present device; made while every worker joins.

    Args:
        address: This process's address.
        port: A free port of it.
        size: Number of members.

    Raises:
        MissingExtraError: vLLM is not installed beside the trainer.
    """

    def __init__(self, address: str, port: int, size: int) -> None:
        try:
            from vllm.distributed.weight_transfer.nccl_common import trainer_init
        except ModuleNotFoundError as error:
            raise MissingExtraError("vllm", "The transport 'group' over NCCL or RCCL") from error
        self._own = trainer_init({"master_address": address, "master_port": port, "world_size": size})

    def broadcast(self, tensor: Tensor, receiving: Future[Any]) -> None:
        """See ``TrainerGroup``. An error of a member is noticed; NCCL itself would wait forever."""
        stream = torch.cuda.current_stream()
        self._own.broadcast(tensor, src=0, stream=stream)
        sent = torch.cuda.Event()
        sent.record(stream)
        while not sent.query():
            check(receiving)
            time.sleep(1e-4)

    def close(self) -> None:
        """Leave the group."""
        self._own.destroy()
