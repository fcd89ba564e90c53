"""The trainer's end of an NCCL or RCCL process group; vLLM creates the group, and vLLM's workers receive the buckets.

The order of calls is the same as for the gloo group, which the tests run; the NCCL group needs an accelerator.
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
    """The trainer's member of the NCCL group, on its current device; its creation waits until every worker joins.

    Args:
        address: Address of this process.
        port: A free port.
        size: Number of members.

    Raises:
        MissingExtraError: vLLM is not installed in the trainer's environment.
    """

    def __init__(self, address: str, port: int, size: int) -> None:
        try:
            from vllm.distributed.weight_transfer.nccl_common import trainer_init
        except ModuleNotFoundError as error:
            raise MissingExtraError("vllm", "transport='group' with NCCL/RCCL") from error
        self._own = trainer_init({"master_address": address, "master_port": port, "world_size": size})

    def broadcast(self, tensor: Tensor, receiving: Future[Any]) -> None:
        """See ``GlooGroup.broadcast``. Detects an error of a member, for which NCCL itself would wait forever."""
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
