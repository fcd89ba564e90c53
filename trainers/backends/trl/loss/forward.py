"""Forward passes: the log-probabilities of the policy's tokens, without keeping the logits of a whole row in memory.

The head is TRL's fused head (``fused_head``), which processes the vocabulary in tiles and, on a CPU or with Triton,
skips tokens without a label. Rows are padded on the right, so in a causal model no token attends to padding. Therefore
no mask is needed, and attention without a mask takes the fast path of ``scaled_dot_product_attention``. Rows of a
prefix tree are computed as one packed sequence, whose results are then copied to the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from peft import PeftModel
from torch import Tensor, nn
from transformers import PreTrainedModel

from ..sharding.fsdp2 import release, shard
from .adapter_reference import AdapterReference
from .fused_head import put_head
from .micro_batches import MicroBatch
from .prefix_tree import IGNORED

Autocast = Callable[[], AbstractContextManager[None]]


@dataclass(slots=True)
class TokenScores:
    """Results of a forward pass on B rows padded to W tokens.

    The first four attributes have one value for each predicted token, (B, W - 1), which is 0 for tokens without a
    label.

    Attributes:
        logp: Log-probability of the token.
        entropy: Entropy of the model's distribution over the vocabulary at the token, in nats.
        mean_logp: Mean log-probability over the vocabulary, without a gradient; ``None`` if the head does not compute
            it.
        sum_squares: Sum of squared probabilities over the vocabulary, without a gradient; ``None`` if the head
            does not compute it.
        embedding: Mean of the last layer over the policy's tokens of each row, (B, H); ``None`` if not requested.
        balance: Load-balancing loss of a mixture of experts; ``None`` for other models.
    """

    logp: Tensor
    entropy: Tensor
    mean_logp: Tensor | None = None
    sum_squares: Tensor | None = None
    embedding: Tensor | None = None
    balance: Tensor | None = None


def score(
    model: Any, batch: MicroBatch, autocast: Autocast, *, balance: bool = False, embed: bool = False
) -> TokenScores:
    """Compute the log-probabilities and further scores of a micro-batch's tokens.

    Args:
        model: A model with a fused head, wrapped or not.
        batch: The micro-batch.
        autocast: Returns a context that sets the precision of the computation.
        balance: Whether to compute the load-balancing loss of a mixture of experts.
        embed: Whether to compute the embeddings of the rows.
    """
    tree = batch.tree
    inputs: dict[str, Any] = {"input_ids": batch.ids, "labels": batch.labels, "fused_lm_head": True}
    if tree is not None:
        inputs |= tree.inputs
    elif balance:
        # Padding must not count as load of the experts.
        inputs |= {"attention_mask": batch.attention, "output_router_logits": True}
    elif not causal(model):
        inputs["attention_mask"] = batch.attention
    with autocast(), _last_layer(model, wanted=embed) as seen:
        output = model(**inputs)

    def of_rows(values: Tensor | None) -> Tensor | None:
        if values is None or tree is None:
            return None if values is None else values.float()
        return tree.of_rows(values.float(), batch.labels)

    logp = of_rows(output.log_probs)
    assert logp is not None  # the head always computes it
    entropy, squares = of_rows(output.entropy), of_rows(output.log_sum_sq_probs)
    hidden = tree.hidden_of_rows(seen[0]) if seen and tree is not None else seen[0] if seen else None
    return TokenScores(
        logp,
        logp.detach() * 0 if entropy is None else entropy,
        mean_logp=of_rows(output.mean_logits),
        sum_squares=None if squares is None else squares.exp() * (batch.labels[:, 1:] != IGNORED),
        embedding=None if hidden is None else _pooled(hidden, batch.mask),
        balance=output.aux_loss if balance else None,
    )


@contextmanager
def _last_layer(model: Any, *, wanted: bool) -> Iterator[list[Tensor]]:
    """Yield a list to which each forward pass appends the last layer's output, (B, W, H), if it is ``wanted``.

    The output of a fused head does not contain these hidden states.
    """
    seen: list[Tensor] = []
    if not wanted:
        yield seen
        return
    backbone = causal_model(model).base_model
    hook = backbone.register_forward_hook(lambda *call: seen.append(call[-1].last_hidden_state))
    try:
        yield seen
    finally:
        hook.remove()


def _pooled(hidden: Tensor, mask: Tensor) -> Tensor:
    """Average (B, W, H) over the tokens whose mask is true; return (B, H).

    The mask, (B, W - 1), begins at the second token.
    """
    chosen = mask[..., None].to(torch.float32)
    return (hidden[:, 1:].float() * chosen).sum(1) / chosen.sum(1).clamp(min=1.0)


def causal(model: Any) -> bool:
    """Whether every token attends only to itself and earlier tokens; padding on the right then needs no mask."""
    config = _plain(model).config.get_text_config()
    return bool(getattr(config, "is_causal", True)) and not getattr(config, "use_bidirectional_attention", False)


class ReferenceModel:
    """The reference model: the policy at the start of the run, or at the last reset.

    With adapters, the reference is the policy itself with its initial adapter values (``AdapterReference``); otherwise
    it is a copy of the policy.

    Args:
        model: The policy before the trainer adds a fused head; ``None`` if the trainer adds new adapters to the policy.
        dtype: Precision of the computation.
        temperature: Temperature of the log-probabilities.
        autocasts: Whether the policy keeps its own precision and computes in ``dtype`` under autocast. Then the copy
            casts only the weights that autocast casts, so that it computes the same values as the policy.
        copied: Whether to copy the model; otherwise the model itself is frozen and must not be used elsewhere.

    Attributes:
        moved: Whether the reference was reset since the run began, so that checkpoints must contain it.
    """

    def __init__(
        self,
        model: PreTrainedModel | PeftModel | None,
        dtype: torch.dtype,
        temperature: float,
        *,
        autocasts: bool = False,
        copied: bool = True,
    ) -> None:
        self.model: nn.Module | None = None
        self.moved = False
        self._adapters = AdapterReference(model if isinstance(model, PeftModel) else None)
        if model is not None and not isinstance(model, PeftModel):
            self.model = (
                frozen_copy(model, dtype, linear_only=autocasts) if copied else model.requires_grad_(False).eval()
            )
            put_head(self.model, temperature, ("entropy",))

    @property
    def adapters(self) -> bool:
        """Whether the reference is the policy itself, with saved values of its adapter instead of the current ones."""
        return self._adapters.changed

    def to(self, device: torch.device) -> None:
        """Move the reference model to a device, if it is a copy of the policy."""
        if self.model is not None:
            self.model.to(device)

    def divide(self, policy: Any, device: torch.device, compute: torch.dtype) -> None:
        """Shard a copied reference model with FSDP2, like the policy; with adapters, save the adapters' initial values.

        ``compute`` is the precision of the forward pass.
        """
        if self.model is None:
            self._adapters.follow(_plain(policy))
        else:
            shard(self.model, device, compute, trained=False)

    def score(self, policy: Any, batch: MicroBatch, autocast: Autocast) -> Tensor:
        """Return the reference model's log-probabilities of the policy's tokens, (B, W - 1)."""
        with torch.no_grad():
            if self.model is not None:
                return score(self.model, batch, autocast).logp
            with self._adapters.active(_plain(policy)):
                return score(policy, batch, autocast).logp

    def reset(self, policy: Any) -> None:
        """Replace the reference with a copy of the current policy."""
        if self.model is None:
            self._adapters.reset(_plain(policy))
        else:
            release(_plain(policy))
            self.load_state_dict(_plain(policy).state_dict())
        self.moved = True

    def state_dict(self) -> dict[str, Tensor]:
        """Return the weights of the copy; with adapters, only the adapters' reference values."""
        return self._adapters.state_dict() if self.model is None else dict(self.model.state_dict())

    def comparable(self, policy: Any) -> dict[str, Tensor]:
        """Return tensors to read a saved reference into, with the names, shapes and sharding of ``state_dict``."""
        return self._adapters.values_of(_plain(policy)) if self.model is None else dict(self.model.state_dict())

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Load weights into the copy, in its precision; with adapters, load only the adapters' reference values."""
        self.moved = True
        if self.model is None:
            self._adapters.load_state_dict(state)
        else:
            self.model.load_state_dict(state)


def set_head(model: Any, temperature: float, outputs: Collection[str] = ("entropy",), *, cast: bool = False) -> None:
    """Put the fused head on a model, wrapped or not, replacing an earlier one; see ``put_head``."""
    put_head(causal_model(model), temperature, outputs, cast=cast)


def causal_model(model: Any) -> Any:
    """Return the causal language model inside the wrappers of data parallelism and adapters."""
    plain = _plain(model)
    return plain.get_base_model() if hasattr(plain, "get_base_model") else plain


def _plain(model: Any) -> Any:
    """The model inside the wrapper of data parallelism."""
    return model.module if hasattr(model, "module") else model


def frozen_copy(model: nn.Module, dtype: torch.dtype, *, linear_only: bool = False) -> nn.Module:
    """Return a frozen copy of a model in a given precision.

    Args:
        model: The model to copy.
        dtype: Precision of the copy.
        linear_only: Cast only the weights of linear layers other than the head, because embeddings and norms determine
            the precision of the residual stream.
    """
    head = model.get_output_embeddings() if isinstance(model, PreTrainedModel) else None
    linear = (module for module in model.modules() if isinstance(module, nn.Linear) and module is not head)
    cast_too = {id(weights) for module in linear for weights in module.parameters()}
    # Cast weight by weight: a second copy in the precision of training may not fit into memory.
    cast: dict[int, Any] = {
        id(weights): nn.Parameter(
            weights.detach().to(weights.dtype if linear_only and id(weights) not in cast_too else dtype, copy=True),
            requires_grad=False,
        )
        for weights in model.parameters()
    }
    frozen: nn.Module = deepcopy(model, cast)
    return frozen.eval()
