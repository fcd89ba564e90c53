"""``AdapterReference``: the reference model of a policy with adapters, for KL terms.

The reference model is the initial model of the run. If the run continues an adapter, the reference has the adapter's
initial values and differs from the base model. The reference shares the policy's weights; it needs memory for one copy
of the adapter, and for a second copy during a forward pass. Not covered: adapters that DeepSpeed's ZeRO-3 partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from peft import PeftModel
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from ..sharding.fsdp2 import release
from ..sharding.torch_state import whole


class AdapterReference:
    """Reference model with the adapter's values at the start of the run, or at the last reset of the reference.

    Args:
        policy: The initial policy with its adapter; if its weights are still on the device "meta", call ``follow`` once
            it has received them. ``None`` if the trainer adds a new adapter, which initially changes nothing.
    """

    def __init__(self, policy: PeftModel | None = None) -> None:
        self._start: dict[str, Tensor] = {}
        if policy is not None and not any(weights.is_meta for _, weights in _trained(policy)):
            self.follow(policy)

    @property
    def changed(self) -> bool:
        """Whether the reference differs from the model without the adapter."""
        return bool(self._start)

    @contextmanager
    def active(self, policy: PeftModel) -> Iterator[None]:
        """Context manager that sets the policy's adapter to the reference's values, for passes without gradients."""
        if not self._start:
            with policy.disable_adapter():
                yield
            return
        # Only values are swapped: the optimizer and the sharding refer to the parameter objects.
        trained = dict(_trained(policy))
        release(policy)
        now = {name: _kept(weights) for name, weights in trained.items()}
        try:
            _exchange(trained, self._start)
            yield
        finally:
            release(policy)
            _exchange(trained, now)

    def reset(self, policy: PeftModel) -> None:
        """Replace the reference with the current policy."""
        self._start = self.values_of(policy)

    def follow(self, policy: PeftModel) -> None:
        """Save the initial values of a policy's adapter; every process calls it, after the sharding if there is one."""
        if _changes_the_model(policy):
            self.reset(policy)

    def values_of(self, policy: PeftModel) -> dict[str, Tensor]:
        """Return a copy of the adapter's values."""
        release(policy)
        return {name: weights.detach().clone() for name, weights in _trained(policy)}

    def state_dict(self) -> dict[str, Tensor]:
        """Return the reference's adapter values; empty if the reference is the model without the adapter."""
        return dict(self._start)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore a state that ``state_dict`` returned."""
        self._start = dict(state)


@torch.no_grad()
def _exchange(trained: Mapping[str, nn.Parameter], values: Mapping[str, Tensor]) -> None:
    for name, weights in trained.items():
        if isinstance(weights, DTensor):
            weights.copy_(values[name])  # FSDP only gathers the storage that it knows
        else:
            weights.data = values[name].to(weights.device)


def _kept(weights: nn.Parameter) -> Tensor:
    """Return a parameter's current values, to restore later: a copy if it is sharded, else its own storage."""
    return weights.detach().clone() if isinstance(weights, DTensor) else weights.data


def _trained(policy: PeftModel) -> Iterator[tuple[str, nn.Parameter]]:
    return ((name, weights) for name, weights in policy.named_parameters() if weights.requires_grad)


def _changes_the_model(policy: PeftModel) -> bool:
    """Whether the adapter changes the model's output; a new adapter does not, since one of its factors is zero."""
    return any(
        ".lora_A." not in name and (".lora_B." not in name or bool(whole(weights).any()))
        for name, weights in _trained(policy)
    )
