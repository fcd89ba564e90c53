"""``Masters``: float32 copies of trained weights that are held in bfloat16, for the optimizer.

The module then computes, and is gathered and sent, in bfloat16 without a cast, while updates that are too small for
bfloat16 add up in the copies. Gradients of micro-batches add up in float32 as well. The copies are each process's own
shards, on its device or in host memory, where they take the optimizer's state with them: of a weight, 2 bytes stay on
the device in place of 16. Not covered: weights that DeepSpeed shards (it keeps such copies itself), and plain data
parallelism, which averages gradients before they get here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor


class Masters:
    """The float32 copies of a module's trained weights.

    Args:
        module: Its trained weights are in float32, divided by FSDP2 or whole.
        device: Where the copies are; ``None`` leaves each where its weight is.

    Attributes:
        copies: Each process's own part of a copy, by the name of the weight.
    """

    def __init__(self, trained: Mapping[str, nn.Parameter], device: torch.device | None) -> None:
        self._trained = dict(trained)
        self.copies: dict[str, nn.Parameter] = {}
        for name, weights in self._trained.items():
            own = local(weights.detach())
            self.copies[name] = nn.Parameter(own.to(device=device or own.device, dtype=torch.float32, copy=True))
            hooked: Any = weights
            hooked.register_post_accumulate_grad_hook(partial(self._take, name))

    def adopt(self, optimizer: torch.optim.Optimizer) -> None:
        """Let an optimizer of the weights, which has not taken a step, step on the copies instead."""
        copy_of = {id(weights): self.copies[name] for name, weights in self._trained.items()}
        for group in optimizer.param_groups:
            group["params"] = [copy_of[id(weights)] for weights in group["params"]]
        optimizer.register_step_post_hook(lambda *_: self.give())

    @torch.no_grad()
    def give(self) -> None:
        """Round the copies into the weights, and drop their gradients."""
        for name, weights in self._trained.items():
            local(weights).copy_(self.copies[name])
            self.copies[name].grad = None

    @torch.no_grad()
    def _take(self, name: str, weights: Tensor) -> None:
        """Add the gradient of one backward pass to that of the copy."""
        copy = self.copies[name]
        if weights.grad is None:
            return
        found = local(weights.grad).to(device=copy.device, dtype=torch.float32)
        copy.grad = found if copy.grad is None else copy.grad.add_(found)
        weights.grad = None


def local(tensor: Any) -> Tensor:
    """This process's part of a tensor."""
    found: Tensor = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    return found


def like(part: Tensor, whole: Tensor) -> Tensor:
    """A process's part of a tensor, divided as another is."""
    if not isinstance(whole, DTensor):
        return part
    found: Tensor = DTensor.from_local(
        part, whole.device_mesh, whole.placements, run_check=False, shape=whole.shape, stride=whole.stride()
    )
    return found
