"""``AdapterReference``: a policy of adapters as the run began with it, to measure how far it has gone (KL).

It is the start model: where a run takes up an adapter, the model with that adapter as it was, not the model below it.
It shares the policy's weights and costs the size of the adapter, and as much again while it computes. Not covered:
adapters that DeepSpeed's ZeRO-3 divides.
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
    """What the adapter was at the start of the run, or when the reference was last reset.

    Args:
        policy: The policy at the start, which may wait for its weights until ``follow``; ``None`` where it will get a
            new adapter, which changes nothing at first.
    """

    def __init__(self, policy: PeftModel | None = None) -> None:
        self._start: dict[str, Tensor] = {}
        if policy is not None and not any(weights.is_meta for _, weights in _trained(policy)):
            self._begin(policy)

    @property
    def changed(self) -> bool:
        """Whether it is something else than the model without the adapter."""
        return bool(self._start)

    @contextmanager
    def active(self, policy: PeftModel) -> Iterator[None]:
        """Let the policy compute as the reference while this lasts; for passes without gradients."""
        if not self._start:
            with policy.disable_adapter():
                yield
            return
        # The parameters themselves stay, for the optimizer and for what divides them; only their values are exchanged.
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
        """Make the policy as it is now the reference."""
        self._start = self.values_of(policy)

    def follow(self, policy: PeftModel) -> None:
        """Keep what the policy begins with as it is divided, which has happened since; every process calls it."""
        self._begin(policy)

    def values_of(self, policy: PeftModel) -> dict[str, Tensor]:
        """Return a copy of the adapter's values."""
        release(policy)
        return {name: weights.detach().clone() for name, weights in _trained(policy)}

    def state_dict(self) -> dict[str, Tensor]:
        """Return the adapter's values; nothing where the reference is the model without it."""
        return dict(self._start)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a state."""
        self._start = dict(state)

    def _begin(self, policy: PeftModel) -> None:
        if _changes_the_model(policy):
            self.reset(policy)


@torch.no_grad()
def _exchange(trained: Mapping[str, nn.Parameter], values: Mapping[str, Tensor]) -> None:
    for name, weights in trained.items():
        if isinstance(weights, DTensor):
            weights.copy_(values[name])  # FSDP gathers what it has seen the parameter hold, and nothing else
        else:
            weights.data = values[name].to(weights.device)


def _kept(weights: nn.Parameter) -> Tensor:
    """What a parameter holds, such that ``_exchange`` can give it back."""
    return weights.detach().clone() if isinstance(weights, DTensor) else weights.data


def _trained(policy: PeftModel) -> Iterator[tuple[str, nn.Parameter]]:
    return ((name, weights) for name, weights in policy.named_parameters() if weights.requires_grad)


def _changes_the_model(policy: PeftModel) -> bool:
    """Whether the adapter changes what the model computes; a new one does not, since one of its factors is zero."""
    return any(
        ".lora_A." not in name and (".lora_B." not in name or bool(whole(weights).any()))
        for name, weights in _trained(policy)
    )
