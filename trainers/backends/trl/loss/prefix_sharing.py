"""Prefix sharing: computes the attention of prefix trees, and checks which models can use it.

A replacement of transformers' attention function ``sdpa`` computes a prefix tree if the model receives one, and
otherwise calls the original. Layers other than attention must treat each token separately; a short forward pass over a
few rows checks this before training. A model that cannot share prefixes computes separate rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from inspect import Parameter, signature
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from rstar2_env.core.episode import Episode
from rstar2_env.core.row import Row

from ....plan.row_cost import RowCost
from .forward import causal, causal_model, score
from .micro_batches import lay_out
from .packing import by_prefix, divide
from .prefix_tree import PrefixTree

_TOLERANCE, _LOW_TOLERANCE = 1e-4, 0.05
"""Largest allowed mean difference of the log-probabilities of a tree and of separate rows, in nats: in float32, and in
a lower precision. The difference is larger if tokens attend to wrong tokens."""
_CHANGING_ROPE = ("dynamic", "longrope")
"""Types of rotary embeddings that depend on the longest row of a micro-batch."""


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *args: Any,
    prefix_tree: PrefixTree | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Compute attention as transformers' function ``sdpa`` does, but also for prefix trees."""
    if prefix_tree is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, *args, **kwargs)
    return prefix_tree.attend(query, key, value, kwargs.get("scaling")), None


ALL_ATTENTION_FUNCTIONS.register("sdpa", _attention)


def obstacle_of(model: Any) -> str | None:
    """Return the reason why a model cannot share prefixes, from its class and configuration.

    Args:
        model: The model, wrapped or not.

    Returns:
        A clause such as "its attention is 'eager', not 'sdpa'"; ``None`` if there is no reason.
    """
    base = causal_model(model)
    config = base.config.get_text_config()
    attention = getattr(base.config, "_attn_implementation", None)
    if config is not base.config:
        return "its input is not only text"
    if attention != "sdpa":
        return f"its attention is {attention!r}, not 'sdpa'"
    inputs = signature(type(base).forward).parameters
    passes_on = any(one.kind is Parameter.VAR_KEYWORD for one in inputs.values())
    if not (getattr(base, "_supports_attention_backend", False) and passes_on and "position_ids" in inputs):
        return f"{type(base).__name__} does not use the attention functions and positions of the package transformers"
    if not causal(model):
        return "its tokens attend to later tokens"
    rope = getattr(config, "rope_parameters", None) or {}
    kinds = [one.get("rope_type") for one in (rope, *rope.values()) if isinstance(one, dict)]
    if any(kind in _CHANGING_ROPE for kind in kinds):
        return "its rotary embeddings depend on the longest row of a batch"
    if any(_drops(module) for module in base.modules()):
        return "it uses dropout"
    return None


class PrefixSharing:
    """Decides whether the models of a run compute shared prefixes once, and for which rows.

    Args:
        models: The policy, and other models that score its rows; without models, no rows share prefixes.

    Attributes:
        obstacle: Reason why no rows share prefixes; ``None`` if rows may share prefixes, or if there are no models.
    """

    def __init__(self, *models: Any, obstacle: str | None = None) -> None:
        self.obstacle = obstacle or next(filter(None, map(obstacle_of, models)), None)
        self._models = models
        configs = [causal_model(model).config.get_text_config() for model in models]
        windows = [getattr(one, name, None) for one in configs for name in ("sliding_window", "attention_chunk_size")]
        # For longer rows some layer attends only to a part of the row.
        self._longest = min((size for size in windows if size), default=math.inf)
        costs = [_cost_of(config) for config in configs] or [RowCost(1)]
        # Memory is limited by the model for which copies cost the most.
        self._cost = max(costs, key=lambda cost: (cost.queries or cost.hidden) / cost.kept)

    @property
    def note(self) -> str | None:
        """Message that the run cannot share prefixes although ``optim.share_prefixes`` is on; ``None`` otherwise."""
        if self.obstacle is None:
            return None
        return (
            "optim.share_prefixes is on, but this model cannot compute shared prefixes only once, "
            f"because {self.obstacle}. Each row is computed separately."
        )

    @property
    def active(self) -> bool:
        """Whether rows may share prefixes."""
        return bool(self._models) and self.obstacle is None

    def check(self, policy: Any, device: torch.device, *, exact: bool) -> None:
        """Turn sharing off if a model's log-probabilities differ between a small prefix tree and separate rows.

        All processes call it.

        Args:
            policy: The policy with its fused head, as it is wrapped in training.
            device: Device of the models.
            exact: Whether the models compute in float32; the tolerated difference is then smaller.
        """
        for model in (policy, *self._models[1:]) if self.active else ():
            difference = _difference(model, device)
            if not difference <= (_TOLERANCE if exact else _LOW_TOLERANCE):
                self.obstacle = (
                    f"its log-probabilities with shared prefixes differ from those of separate rows by {difference:.2g}"
                )

    def divide(self, rows: Sequence[Row], budget: int) -> tuple[list[list[int]], list[int]]:
        """Return the rows of each prefix tree, and the rows that are computed separately; see ``packing.divide``."""
        found = [at for at, row in enumerate(rows) if self.active and row.tokens <= self._longest]
        trees, others = divide([rows[at].ids for at in found], budget, self._cost)
        left = set(range(len(rows))).difference(found)
        return [[found[at] for at in tree] for tree in trees], sorted({*left, *(found[at] for at in others)})


def _cost_of(config: Any) -> RowCost:
    """Return the cost estimate of a model, from the sizes in its text configuration."""
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    inner = getattr(config, "intermediate_size", None)
    return RowCost(
        config.hidden_size,
        config.num_attention_heads * head,
        inner if isinstance(inner, int) else None,
        config.num_hidden_layers,
    )


def _difference(model: Any, device: torch.device) -> float:
    """Return the mean difference in nats between log-probabilities from a small prefix tree and from separate rows."""
    rng = np.random.default_rng(0)
    size = causal_model(model).config.get_text_config().vocab_size
    stem, *ends = (rng.integers(0, size, count).tolist() for count in (3, 2, 2, 2))
    rows = [_row(stem, end) for end in (ends[0] + ends[1], ends[0] + ends[2], ends[1])]
    rows = [rows[at] for at in by_prefix([row.ids for row in rows])]
    with torch.no_grad():
        separate, tree = (
            score(model, lay_out(range(len(rows)), rows, device=device, as_tree=as_tree), nullcontext).logp
            for as_tree in (False, True)
        )
    return float((separate - tree).abs().mean())


def _row(prompt: list[int], ids: list[int]) -> Row:
    return Row(Episode(), prompt, ids, [1] * len(ids), [0.0] * len(ids))


def _drops(module: nn.Module) -> bool:
    names = ("p",) if isinstance(module, nn.Dropout) else ("attention_dropout", "dropout_p")
    rates = [getattr(module, name, None) for name in names]
    return any(isinstance(rate, float) and rate > 0 for rate in rates)
