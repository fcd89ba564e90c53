"""``ZeroState``: the trained weights and the optimizer state of a module that DeepSpeed partitions (ZeRO-2, ZeRO-3).

DeepSpeed's own checkpoints can only be read by the number of processes that wrote them. Here every tensor has a name
and its whole shape, as in ``TorchState``, so both classes can read each other's checkpoints. The N processes gather one
tensor after the other, and each process keeps every N-th tensor for its file. In addition to its partition, a process
therefore holds 1/N of the state, and one whole tensor, in host memory. Tested with DeepSpeed 0.19. Not covered:
optimizer state on disks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from . import shards
from .shards import OPTIMIZER, WEIGHTS, TensorInfo

_STEP = "step"
"""Name of the step counter in an optimizer's state; unlike the moments, it is a single number."""


class ZeroState:
    """The trained weights and the optimizer state of a DeepSpeed engine, as named tensors.

    Args:
        module: The policy, unwrapped.
        engine: DeepSpeed's engine around it.
        rank: Rank of this process, from 0.
        size: Number of processes.
    """

    def __init__(self, module: nn.Module, engine: Any, rank: int, size: int) -> None:
        self._module, self._engine, self._rank, self._size = module, engine, rank, size
        self._trained = {name: weights for name, weights in module.named_parameters() if weights.requires_grad}

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors that this process writes: every N-th tensor with N processes; every process calls it."""
        return {
            name: value.detach().cpu().clone()
            for number, (name, value) in enumerate(self._all())
            if number % self._size == self._rank
        }

    def read(self, checkpoint: str, *, weights_too: bool = True) -> None:
        """Load a checkpoint, tensor by tensor; every process calls it.

        Args:
            checkpoint: Folder of the checkpoint.
            weights_too: Whether to load the weights in addition to the optimizer state.

        Raises:
            ConfigurationError: The checkpoint holds the weights of another model, or cannot be read.
        """
        from deepspeed.utils import safe_set_full_fp32_param, safe_set_full_optimizer_state

        held = shards.listing(checkpoint)
        keys = {name.rpartition("/")[2] for name in held if name.startswith(OPTIMIZER)} - {_STEP}
        self._make_state(keys, self._step_in(checkpoint, held))
        for name, weights in self._trained.items():
            shape = getattr(weights, "ds_shape", weights.shape)
            if weights_too:
                safe_set_full_fp32_param(weights, self._one(checkpoint, f"{WEIGHTS}{name}", shape))
            for key in sorted(keys):
                full = f"{OPTIMIZER}{name}/{key}"
                if full in held:
                    safe_set_full_optimizer_state(weights, self._one(checkpoint, full, shape), key)
        if weights_too:
            self._give()

    def whole(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the trained weights, gathered one by one, in float32; every process must consume all of them."""
        from deepspeed.utils import safe_get_full_fp32_param

        for name, weights in self._trained.items():
            yield name, safe_get_full_fp32_param(weights)

    def frozen(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the weights that are not trained, in the same way as ``whole``."""
        from deepspeed.runtime.zero import GatheredParameters

        for name, weights in self._module.named_parameters():
            if name not in self._trained:
                with GatheredParameters([weights]):
                    yield name, weights.detach()

    def _all(self) -> Iterator[tuple[str, Tensor]]:
        from deepspeed.utils import safe_get_full_optimizer_state

        yield from ((f"{WEIGHTS}{name}", value) for name, value in self.whole())
        self._link()
        states = [self._inner.state.get(flat, {}) for flat in self._flat]
        keys = sorted({key for state in states for key, value in state.items() if isinstance(value, Tensor)})
        steps = [state[_STEP] for state in states if _STEP in state]
        for name, weights in self._trained.items():
            for key in keys:
                if key != _STEP:
                    yield f"{OPTIMIZER}{name}/{key}", safe_get_full_optimizer_state(weights, key)
            if steps:
                yield f"{OPTIMIZER}{name}/{_STEP}", torch.as_tensor(steps[0], dtype=torch.float32)

    @property
    def _zero(self) -> Any:
        return self._engine.optimizer

    @property
    def _inner(self) -> Any:
        """The optimizer that DeepSpeed's own optimizer wraps; it updates the flat partitions of the weights."""
        return self._zero.optimizer

    @property
    def _flat(self) -> list[Tensor]:
        """This process's flat partitions of the weights, in float32."""
        names = ("single_partition_of_fp32_groups", "fp32_partitioned_groups_flat")
        found: list[Tensor] = next(getattr(self._zero, name) for name in names if hasattr(self._zero, name))
        return found

    def _make_state(self, keys: set[str], step: float | None) -> None:
        """Create the optimizer state before the first step, at which DeepSpeed would create it.

        Args:
            keys: Names of the moments, which start at 0.
            step: Value of the step counter; ``None`` for an optimizer without one.
        """
        for flat in self._flat:
            state: dict[str, Tensor] = {key: torch.zeros_like(flat) for key in keys}
            if step is not None:
                state[_STEP] = torch.tensor(step, dtype=torch.float32)
            if state:
                self._inner.state[flat] = state
        self._link()

    def _link(self) -> None:
        """Link each weight to its optimizer state again, since ZeRO-2 may have linked it before the state existed."""
        if hasattr(self._zero, "_hp_optimizer_states_linked") and all(flat in self._inner.state for flat in self._flat):
            self._zero._hp_optimizer_states_linked = False
            self._zero._lazy_init_hp_params_optimizer_state()

    def _give(self) -> None:
        """Copy the float32 partitions to the weights that forward and backward passes use."""
        if hasattr(self._zero, "update_lp_params"):
            self._zero.update_lp_params()
            return
        for number in range(len(self._flat)):
            self._zero._reassign_or_swap_out_partitioned_parameters(number)
        kept = self._zero.persistent_parameters
        if kept:
            kept[0].all_gather(kept)

    def _step_in(self, checkpoint: str, held: Mapping[str, TensorInfo]) -> float | None:
        names = [f"{OPTIMIZER}{name}/{_STEP}" for name in self._trained]
        found = next((name for name in names if name in held), None)
        return None if found is None else float(self._one(checkpoint, found, torch.Size([])))

    def _one(self, checkpoint: str, name: str, shape: torch.Size) -> Tensor:
        read = shards.read(checkpoint, lambda _: {name: torch.zeros(shape)}, alone=True)
        return read[name].to(self._engine.device)
