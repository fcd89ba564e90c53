"""Attention for one forward pass over tokens of many sequences, packed one after the other without padding.

A pass holds the newest token of every generating request, and the prompts of new requests. All layers except attention
process tokens independently. In the attention, each token attends to its own sequence in the cache, which is read in
place: query heads that share a key-value head (grouped-query attention) are computed as if they were several tokens of
one head. transformers, in contrast, copies keys and values for each query head.

Covered: causal models that look up their attention function by name, and use ``sdpa`` or flash attention. The name is
replaced only during a forward pass of the engine, so training with the same module uses the model's own attention. Not
covered: models with nested configurations (vision, audio), sliding windows, and softcapping of attention scores.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, PreTrainedModel

NAME = "rstar2_packed"
"""Name under which ``packed_attention`` is registered in transformers, which makes no mask for names it does not know.
"""

MOST_SCORES = 1 << 23
"""Maximum number of elements of an attention mask: a prompt that needs more is computed in parts. Also the maximum
total number of elements of the masks that are kept during a forward pass."""


MOST_ALONE = 16
"""Maximum number of long sequences whose attention is computed separately in a forward pass."""

ALONE, ALONE_CPU = 1 << 14, 400
"""Cost of computing the attention of one sequence separately, as the number of cache tokens that could be read in the
same time; the second value is for a CPU."""


def count_alone(lengths: Sequence[int], device: torch.device) -> int:
    """Return how many of the longest sequences to compute separately, so that shorter ones need less padding.

    Args:
        lengths: Number of tokens of each sequence with one new token, the longest first.
        device: Device of the computation.
    """
    cost = ALONE_CPU if device.type == "cpu" else ALONE
    best, count, own = len(lengths) * lengths[0] if lengths else 0, 0, 0
    for number, length in enumerate(lengths[:MOST_ALONE], start=1):
        own += length + cost
        others = lengths[number] * (len(lengths) - number) if number < len(lengths) else 0
        if own + others < best:
            best, count = own + others, number
    return count


@dataclass(frozen=True, slots=True)
class TokenRun:
    """Consecutive new tokens of one sequence.

    Attributes:
        slot: Index of the sequence's slot in the cache (``SlotCache``).
        start: Index of the first new token among all tokens of the forward pass.
        count: Number of new tokens.
        known: Number of earlier tokens of the sequence, whose keys and values are in the cache.
    """

    slot: int
    start: int
    count: int
    known: int


class Pack:
    """The tokens of a packed forward pass: first the single new tokens of sequences, then the runs in ``pieces``.

    Args:
        slots: The slot of each sequence with one new token.
        positions: The position of the new token in each of these sequences.
        pieces: Runs of tokens of the other sequences.
        device: Device of the model.
    """

    def __init__(
        self, slots: Sequence[int], positions: Sequence[int], pieces: Sequence[TokenRun], device: torch.device
    ) -> None:
        self.single = len(slots)
        self.pieces = pieces
        self._device = device
        self._masks: dict[torch.dtype, Tensor] = {}
        self._causal: dict[tuple[torch.dtype, int, int, int], Tensor] = {}
        self._kept_scores = 0
        if not self.single:
            return
        self.rows, self.width = max(slots) + 1, max(positions) + 1
        self._positions = torch.tensor(positions, device=device)
        # If every row has a token, the tokens are in the order of the rows already.
        self.dense = self.single == self.rows
        self.slots = torch.tensor(slots, device=device)

    def mask(self, dtype: torch.dtype) -> Tensor:
        """Additive mask for the attention scores of the sequences with one new token each: (slots, 1, 1, positions)."""
        if dtype not in self._masks:
            device, positions = self._device, self._positions
            if not self.dense:
                # A row without a token attends to its first column; the result is not used.
                positions = positions.new_zeros(self.rows).index_copy_(0, self.slots, positions)
            hidden = torch.arange(self.width, device=device) > positions[:, None]
            mask = torch.zeros(hidden.shape, dtype=dtype, device=device).masked_fill_(hidden, -torch.inf)
            self._masks[dtype] = mask.view(self.rows, 1, 1, self.width)
        return self._masks[dtype]

    def causal(self, dtype: torch.dtype, groups: int, new: int, seen: int) -> Tensor | None:
        """Additive causal mask for the attention scores of a sequence's last ``new`` tokens: (groups * new, seen).

        Returns ``None`` for a single new token: it sees the whole sequence, so it needs no mask.

        Args:
            dtype: Precision of the scores.
            groups: Number of query heads that share a key-value head.
            new: Number of new tokens.
            seen: Length of the sequence including the new tokens.
        """
        if new == 1:
            return None
        key = (dtype, groups, new, seen)
        if key in self._causal:
            return self._causal[key]
        mask = torch.full((new, seen), -torch.inf, dtype=dtype, device=self._device).triu_(seen - new + 1)
        mask = mask.repeat(groups, 1)
        # Every layer needs the same masks, but those of long prompts take too much memory to be kept.
        if self._kept_scores + mask.numel() <= MOST_SCORES:
            self._causal[key] = mask
            self._kept_scores += mask.numel()
        return mask


_pass = threading.local()


@contextmanager
def packed(model: PreTrainedModel, pack: Pack) -> Iterator[None]:
    """In the ``with`` block, make the model compute one packed pass in this thread with ``packed_attention``."""
    config, _pass.pack = model.config, pack
    former, config._attn_implementation = config._attn_implementation, NAME
    try:
        yield
    finally:
        config._attn_implementation = former
        del _pass.pack


def packed_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Compute the attention of each token of a packed pass to itself and the earlier tokens of its own sequence.

    Args:
        module: The attention layer.
        query: Queries of the pass: (1, query heads, tokens, head size).
        key: Keys in the cache: (slots, key-value heads, positions, head size).
        value: Values in the cache, with the same shape except for the head size.
        attention_mask: Not used.
        dropout: Not used in evaluation.
        scaling: Factor of the attention scores; ``None`` means 1 / sqrt(head size).
        **kwargs: Further arguments of the model.

    Returns:
        The output, (1, tokens, query heads, head size of values), and ``None`` in place of attention weights.
    """
    pack: Pack = _pass.pack
    tokens = query[0].transpose(0, 1)
    found = []
    if pack.single:
        found.append(_of_single(pack, tokens[: pack.single], key, value, scaling))
    for piece in pack.pieces:
        found.extend(_of_piece(pack, piece, tokens[piece.start : piece.start + piece.count], key, value, scaling))
    return (found[0] if len(found) == 1 else torch.cat(found))[None], None


def _of_single(pack: Pack, query: Tensor, key: Tensor, value: Tensor, scaling: float | None) -> Tensor:
    """Attention of sequences with one new token, all at once; query and result are (tokens, query heads, head size)."""
    _, query_heads, size = query.shape
    heads, rows = key.shape[1], pack.rows
    if not pack.dense:
        query = query.new_zeros(rows, query_heads, size).index_copy_(0, pack.slots, query)
    found = scaled_dot_product_attention(
        query.reshape(rows, heads, query_heads // heads, size),
        key[:rows, :, : pack.width],
        value[:rows, :, : pack.width],
        attn_mask=pack.mask(query.dtype),
        scale=scaling,
    )
    found = found.reshape(rows, query_heads, value.shape[-1])
    return found if pack.dense else found.index_select(0, pack.slots)


def _of_piece(
    pack: Pack, piece: TokenRun, query: Tensor, key: Tensor, value: Tensor, scaling: float | None
) -> Iterator[Tensor]:
    """Attention of a run of tokens, part by part; query and results are (tokens, query heads, head size)."""
    count, query_heads, size = query.shape
    heads = key.shape[1]
    groups = query_heads // heads
    step = max(1, MOST_SCORES // (groups * (piece.known + count)))
    for start in range(0, count, step):
        part = query[start : start + step]
        new, seen = part.shape[0], piece.known + start + part.shape[0]
        found = scaled_dot_product_attention(
            part.reshape(new, heads, groups, size).permute(1, 2, 0, 3).reshape(1, heads, groups * new, size),
            key[piece.slot : piece.slot + 1, :, :seen],
            value[piece.slot : piece.slot + 1, :, :seen],
            attn_mask=pack.causal(query.dtype, groups, new, seen),
            scale=scaling,
        )
        yield found.view(heads, groups, new, -1).permute(2, 0, 1, 3).reshape(new, query_heads, -1)


AttentionInterface.register(NAME, packed_attention)


def can_pack(model: PreTrainedModel) -> bool:
    """Whether a model gives the same results with ``packed_attention`` as with its own attention."""
    config = model.config
    looks_up = getattr(model, "_can_set_attn_implementation", None)
    own = str(config._attn_implementation)
    return (
        (own == "sdpa" or own.startswith("flash_attention"))
        and config.get_text_config() is config
        and not config.sub_configs
        and not getattr(config, "attn_logit_softcapping", None)
        and not getattr(config, "num_kv_shared_layers", 0)
        and looks_up is not None
        and bool(looks_up())
    )
