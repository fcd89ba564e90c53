"""Forward passes: the log-probabilities of the policy's tokens, without the logits of a whole row at once.

The head is TRL's fused one (``add_fused_lm_head``), which folds the vocabulary in tiles and computes only what has a
label. Rows begin at the first column and are padded on the right: nothing that a token attends to in a causal model is
padding, so no mask is needed, and attention without one takes the fast path of ``scaled_dot_product_attention``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from peft import PeftModel
from torch import Tensor, nn
from transformers import PreTrainedModel
from trl.trainer.utils import add_fused_lm_head

from .adapter_reference import AdapterReference
from .micro_batches import MicroBatch

Autocast = Callable[[], AbstractContextManager[None]]


@dataclass(slots=True)
class Scores:
    """What a forward pass says of each predicted token, (B, W - 1), 0 where there is no label.

    Attributes:
        logp: Log-probability of the token.
        entropy: Entropy of the distribution it was drawn from, in nats.
        balance: Load-balancing loss of a mixture of experts; ``None`` elsewhere.
    """

    logp: Tensor
    entropy: Tensor
    balance: Tensor | None = None


def score(model: Any, batch: MicroBatch, autocast: Autocast, *, balance: bool = False) -> Scores:
    """Run the model on a micro-batch.

    Args:
        model: A model with a fused head, wrapped or not.
        batch: The rows.
        autocast: Precision of the computation.
        balance: Whether to compute the load-balancing loss of a mixture of experts.
    """
    inputs: dict[str, Any] = {"input_ids": batch.ids, "labels": batch.labels, "fused_lm_head": True}
    if balance:
        # Tokens of the padding must not count as load of their experts.
        inputs |= {"attention_mask": batch.attention, "output_router_logits": True}
    elif not causal(model):
        inputs["attention_mask"] = batch.attention
    with autocast():
        output = model(**inputs)
    entropy = output.log_probs.detach() * 0 if output.entropy is None else output.entropy
    return Scores(output.log_probs.float(), entropy.float(), output.aux_loss if balance else None)


def causal(model: Any) -> bool:
    """Whether every token attends to earlier ones alone, so that padding on the right needs no mask."""
    config = _plain(model).config.get_text_config()
    return bool(getattr(config, "is_causal", True)) and not getattr(config, "use_bidirectional_attention", False)


class Reference:
    """The model that the policy is compared with: the policy as it was when the run began, or was last reset.

    With adapters it is the policy itself with those that it began with (``AdapterReference``); else it is a copy in the
    precision of the computation.

    Args:
        model: The policy before any head was put on it by the trainer; ``None`` where the trainer puts new adapters on
            it.
        dtype: Precision of the copy.
        temperature: Temperature of the log-probabilities.

    Attributes:
        moved: Whether it is no longer what the run began with, so that checkpoints must hold it.
    """

    def __init__(self, model: PreTrainedModel | PeftModel | None, dtype: torch.dtype, temperature: float) -> None:
        self.model: nn.Module | None = None
        self.moved = False
        self._adapters = AdapterReference(model if isinstance(model, PeftModel) else None)
        if model is not None and not isinstance(model, PeftModel):
            self.model = _frozen_copy(model, dtype)
            add_fused_lm_head(self.model, temperature=temperature, outputs=("log_probs", "entropy"))

    def to(self, device: torch.device) -> None:
        """Move the copy to a device."""
        if self.model is not None:
            self.model.to(device)

    def score(self, policy: Any, batch: MicroBatch, autocast: Autocast) -> Tensor:
        """Return the log-probabilities of the policy's tokens, (B, W - 1)."""
        with torch.no_grad():
            if self.model is not None:
                return score(self.model, batch, autocast).logp
            with self._adapters.active(_plain(policy)):
                return score(policy, batch, autocast).logp

    def reset(self, policy: Any) -> None:
        """Become a copy of the policy as it is now."""
        if self.model is None:
            self._adapters.reset(_plain(policy))
        else:
            self.load_state_dict(_plain(policy).state_dict())
        self.moved = True

    def state_dict(self) -> dict[str, Tensor]:
        """Return the weights of the copy, or the values of the adapters."""
        return self._adapters.state_dict() if self.model is None else dict(self.model.state_dict())

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Take weights over into the copy, in its precision, or values of the adapters."""
        self.moved = True
        if self.model is None:
            self._adapters.load_state_dict(state)
        else:
            self.model.load_state_dict(state)


def set_temperature(model: Any, temperature: float, entropy: bool) -> None:
    """Put the fused head on a model, in place of one that it may have."""
    plain = _plain(model)
    base = plain.get_base_model() if hasattr(plain, "get_base_model") else plain
    outputs = ("log_probs", "entropy") if entropy else ("log_probs",)
    # A head wraps the forward pass that it finds; the class's own is the one without a head.
    base.forward = type(base).forward.__get__(base)
    add_fused_lm_head(base, temperature=temperature, outputs=outputs)


def _plain(model: Any) -> Any:
    """The model inside what data parallelism wraps around it."""
    return model.module if hasattr(model, "module") else model


def _frozen_copy(model: PreTrainedModel, dtype: torch.dtype) -> nn.Module:
    # Cast weight by weight: a second copy in the precision of training would not fit beside the first.
    cast: dict[int, Any] = {
        id(weights): nn.Parameter(weights.detach().to(dtype, copy=True), requires_grad=False)
        for weights in model.parameters()
    }
    frozen: nn.Module = deepcopy(model, cast)
    return frozen.eval()
