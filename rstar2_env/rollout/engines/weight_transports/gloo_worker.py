"""The server side of ``GlooGroup``: lets vLLM workers on CPUs receive weights through vLLM's weight-transfer interface.

vLLM itself has no such transfer for CPUs. Start a server with ``--worker-extension-cls
rstar2_env.rollout.engines.weight_transports.gloo_worker.GlooWorker --weight-transfer-config '{"backend": "gloo"}'``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

from rstar2_env.rollout.engines.vllm_worker import FullLogprobs
from rstar2_env.rollout.engines.weight_transports.gloo import GlooGroup


@dataclass(kw_only=True)
class GlooInitInfo(WeightTransferInitInfo):
    """Arguments for joining the process group; the same fields as for vLLM's own NCCL group."""

    master_address: str
    master_port: int
    rank_offset: int
    world_size: int
    timeout_s: float = 300.0


@dataclass
class GlooUpdateInfo(WeightTransferUpdateInfo):
    """Names, precisions and shapes of the tensors in one bucket, in the bucket's order."""

    names: list[str]
    dtype_names: list[str]
    shapes: list[list[int]]


class GlooTransfer(WeightTransferEngine[GlooInitInfo, GlooUpdateInfo]):
    """Receives buckets of weights over gloo, as vLLM's ``NCCLWeightTransferEngine`` with ``packed`` does over NCCL."""

    init_info_cls: ClassVar[Any] = GlooInitInfo
    update_info_cls: ClassVar[Any] = GlooUpdateInfo
    _group: GlooGroup | None = None

    def init_transfer_engine(self, init_info: GlooInitInfo) -> None:
        """Join the trainer's process group."""
        self.shutdown()
        place = self.parallel_config.data_parallel_index * self.parallel_config.world_size + self.parallel_config.rank
        self._group = GlooGroup(
            init_info.master_address,
            init_info.master_port,
            init_info.rank_offset + place,
            init_info.world_size,
            timeout_s=init_info.timeout_s,
        )

    def start_weight_update(self) -> None:
        """Prepare the model's layers to receive new weights."""
        initialize_layerwise_reload(self.model)

    def finish_weight_update(self) -> None:
        """Make the model's layers use the received weights."""
        finalize_layerwise_reload(self.model, self.model_config)

    def receive_weights(self, update_info: GlooUpdateInfo) -> None:
        """Receive one bucket of tensors and load them into the model."""
        if self._group is None:
            raise RuntimeError(
                "The worker is not part of a group that receives weights: call init_weight_transfer_engine first."
            )
        dtypes = [getattr(torch, name) for name in update_info.dtype_names]
        sizes = [math.prod(shape) * dtype.itemsize for shape, dtype in zip(update_info.shapes, dtypes, strict=True)]
        bucket = torch.empty(sum(sizes), dtype=torch.uint8)
        self._group.broadcast(bucket)
        parts = zip(update_info.names, update_info.shapes, dtypes, bucket.split(sizes), strict=True)
        self.model.load_weights((name, part.view(dtype).view(shape)) for name, shape, dtype, part in parts)

    def update_weights(self, update_info: dict[str, Any]) -> None:
        """Receive one bucket of tensors and load them; unlike vLLM's method, do not synchronize an accelerator."""
        self.receive_weights(self.parse_update_info(update_info))

    def shutdown(self) -> None:
        """Leave the process group."""
        if self._group is not None:
            self._group.close()
            self._group = None


class GlooWorker(FullLogprobs):
    """Worker class for ``vllm serve --worker-extension-cls``; importing it registers the transfer backend ``gloo``."""


if "gloo" not in WeightTransferEngineFactory._registry:
    WeightTransferEngineFactory.register_engine("gloo", GlooTransfer)
