"""``TorchState``: the trained weights and the optimizer's state of a module that torch alone holds, whole or sharded.

The tensors have the names that a checkpoint gives them (``shards``), and are ``DTensor`` where FSDP2 divides them, so
that what many processes wrote can be read by fewer or more. Not covered: what DeepSpeed holds (``zero_state``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from .fsdp2 import release
from .masters import Masters, like, local
from .shards import OPTIMIZER, WEIGHTS, Wanted


class TorchState:
    """What is trained, by name.

    Args:
        module: The policy, not wrapped.
        optimizer: Its optimizer, not wrapped; ``None`` where only weights are asked for.
        masters: The copies on which the optimizer steps, if the weights themselves are in a lower precision.
    """

    def __init__(
        self, module: nn.Module, optimizer: torch.optim.Optimizer | None = None, masters: Masters | None = None
    ) -> None:
        release(module)
        self._module, self._optimizer, self._masters = module, optimizer, masters
        self._trained = {name: weights for name, weights in module.named_parameters() if weights.requires_grad}

    def tensors(self) -> dict[str, Tensor]:
        """Return what a checkpoint holds."""
        found = {f"{WEIGHTS}{name}": self._precise(name) for name in self._trained}
        for name, stepped in self._stepped():
            for key, value in self._states().get(stepped, {}).items():
                if isinstance(value, Tensor):
                    found[f"{OPTIMIZER}{name}/{key}"] = self._divided(value, name)
        return found

    def wanted(self, held: Mapping[str, Wanted]) -> dict[str, Tensor]:
        """Return tensors to read a checkpoint into: the weights themselves, and new ones for the optimizer's state.

        Args:
            held: What the checkpoint holds, by name.
        """
        found = {f"{WEIGHTS}{name}": self._precise(name) for name in self._trained}
        for name, _ in self._stepped():
            beginning = f"{OPTIMIZER}{name}/"
            for full, one in held.items():
                if full.startswith(beginning):
                    found[full] = self._empty(name, one)
        return found

    @torch.no_grad()
    def take(self, read: Mapping[str, Tensor]) -> None:
        """Go on with what was read into the tensors of ``wanted``."""
        if self._masters is not None:
            self._masters.give()
        if self._optimizer is None:
            return
        groups = self._optimizer.state_dict()["param_groups"]
        order = [stepped for group in self._optimizer.param_groups for stepped in group["params"]]
        name_of = {id(stepped): name for name, stepped in self._stepped()}
        states: dict[int, dict[str, Tensor]] = {}
        for number, stepped in enumerate(order):
            beginning = f"{OPTIMIZER}{name_of[id(stepped)]}/"
            states[number] = {
                full.removeprefix(beginning): local(value) if self._masters is not None else value
                for full, value in read.items()
                if full.startswith(beginning)
            }
        self._optimizer.load_state_dict({"state": states, "param_groups": groups})

    def whole(self) -> Iterator[tuple[str, Tensor]]:
        """Walk the trained weights, gathered one by one, in float32; every process must walk on to the end."""
        for name in self._trained:
            precise = self._precise(name)
            yield name, precise.full_tensor() if isinstance(precise, DTensor) else precise

    def frozen(self) -> Iterator[tuple[str, Tensor]]:
        """Walk the weights that are not trained, as ``whole`` does."""
        for name, weights in self._module.named_parameters():
            if name not in self._trained:
                yield name, weights.full_tensor() if isinstance(weights, DTensor) else weights.detach()

    def _precise(self, name: str) -> Tensor:
        """A trained weight, in the precision in which it is trained."""
        weights = self._trained[name]
        return weights.detach() if self._masters is None else like(self._masters.copies[name].detach(), weights)

    def _stepped(self) -> Iterator[tuple[str, Tensor]]:
        """What the optimizer steps on."""
        if self._optimizer is not None:
            yield from (self._trained if self._masters is None else self._masters.copies).items()

    def _states(self) -> Mapping[Any, dict[str, Any]]:
        return {} if self._optimizer is None else self._optimizer.state

    def _divided(self, value: Tensor, name: str) -> Tensor:
        stepped = self._trained[name] if self._masters is None else self._masters.copies[name]
        if self._masters is None or value.shape != stepped.shape:
            return value
        return like(value, self._trained[name])

    def _empty(self, name: str, one: Wanted) -> Tensor:
        precise = self._precise(name)
        if one.shape == precise.shape and precise.dim():
            return torch.zeros_like(precise, dtype=one.dtype)
        return torch.zeros(one.shape, dtype=one.dtype)
