"""``TorchState``: the trained weights and the optimizer state of a module without DeepSpeed, whole or sharded.

The tensors have the names that checkpoints use (``shards``), and are ``DTensor`` if FSDP2 shards them, so a
different number of processes can read them. Not covered: the state of DeepSpeed (``zero_state``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from .fsdp2 import release
from .shards import OPTIMIZER, WEIGHTS, TensorInfo


class TorchState:
    """The trained weights and the optimizer state of a module, as named tensors.

    Args:
        module: The policy, unwrapped.
        optimizer: Its optimizer, unwrapped; ``None`` if only weights are needed.
    """

    def __init__(self, module: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> None:
        release(module)
        self._module, self._optimizer = module, optimizer
        self._trained = {name: weights for name, weights in module.named_parameters() if weights.requires_grad}

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors to write to a checkpoint."""
        found: dict[str, Tensor] = {f"{WEIGHTS}{name}": weights.detach() for name, weights in self._trained.items()}
        states: Mapping[Any, dict[str, Any]] = {} if self._optimizer is None else self._optimizer.state
        for name, weights in self._trained.items():
            for key, value in states.get(weights, {}).items():
                if isinstance(value, Tensor):
                    found[f"{OPTIMIZER}{name}/{key}"] = value
        return found

    def wanted(self, held: Mapping[str, TensorInfo]) -> dict[str, Tensor]:
        """Return tensors to read a checkpoint into: the weights themselves, and new tensors for the optimizer state.

        Args:
            held: Metadata of the checkpoint's tensors, by name.
        """
        return self.wanted_weights(held) | self.wanted_optimizer(held)

    def wanted_weights(self, held: Mapping[str, TensorInfo]) -> dict[str, Tensor]:
        """Return the weights to read a checkpoint into; see ``wanted``."""
        return {f"{WEIGHTS}{name}": weights.detach() for name, weights in self._trained.items()}

    def wanted_optimizer(self, held: Mapping[str, TensorInfo]) -> dict[str, Tensor]:
        """Return new tensors to read the optimizer state into; see ``wanted``."""
        found: dict[str, Tensor] = {}
        for name, weights in self._trained.items():
            beginning = f"{OPTIMIZER}{name}/"
            for full, one in held.items():
                if full.startswith(beginning):
                    divided = one.size == weights.shape and weights.dim() > 0
                    like = weights.detach() if divided else torch.empty(one.size)
                    found[full] = torch.zeros_like(like, dtype=one.properties.dtype)
        return found

    def load(self, read: Mapping[str, Any]) -> None:
        """Load the optimizer state from tensors that were read; the weights were read in place."""
        if self._optimizer is None:
            return
        name_of = {id(weights): name for name, weights in self._trained.items()}
        order = [weights for group in self._optimizer.param_groups for weights in group["params"]]
        states: dict[int, dict[str, Any]] = {}
        for number, weights in enumerate(order):
            beginning = f"{OPTIMIZER}{name_of[id(weights)]}/"
            states[number] = {
                full.removeprefix(beginning): value for full, value in read.items() if full.startswith(beginning)
            }
        groups = self._optimizer.state_dict()["param_groups"]
        self._optimizer.load_state_dict({"state": states, "param_groups": groups})

    def whole(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the trained weights, gathered one by one, in float32; every process must consume all of them."""
        for name, weights in self._trained.items():
            yield name, whole(weights.detach())

    def frozen(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the weights that are not trained, gathered one by one; every process must consume all of them."""
        for name, weights in self._module.named_parameters():
            if name not in self._trained:
                yield name, whole(weights.detach())


def whole(value: Any) -> Any:
    """Return a value, gathered if it is a sharded tensor; every process must call it for a sharded tensor."""
    return value.full_tensor() if isinstance(value, DTensor) else value
