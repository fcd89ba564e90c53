"""Prefix trees: rows that begin with the same tokens, laid out so that shared tokens are computed once.

The rows of a micro-batch are sorted by their tokens. Each row then appends to one packed sequence the tokens that it
does not share with the row before it; they keep the positions that they have in the row. Two rows share a token only if
they also agree on the token after it, so that each packed token predicts at most one token. The new tokens of a row
attend only to the tokens of that row, at any position of the packed sequence; gradients of shared tokens add up over
the rows. The results equal the results of separate rows, up to rounding.

Not covered: which models compute packed sequences (``prefix_sharing``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ....plan.row_cost import attention_calls
from .packing import Ids, shared_lengths

IGNORED = -100
"""Label of a token whose log-probability is not computed."""


@dataclass(frozen=True, slots=True)
class _Call:
    """One attention call for C padded chunks: packed positions of the queries, (C, Q), and of the keys, (C, K).

    A chunk is a part of a row's new tokens. The mask is (C or 1, 1, Q, K); it is ``None`` if every chunk begins its
    row, since the mask is then causal.
    """

    queries: Tensor
    keys: Tensor
    mask: Tensor | None


@dataclass(slots=True)
class PrefixTree:
    """A micro-batch of B rows, each of at most W tokens, packed into N tokens; shared prefixes occur once.

    Attributes:
        ids: Token ids, (1, N).
        labels: Ids of the tokens whose log-probability is computed, ``IGNORED`` elsewhere, (1, N).
        positions: Position of each token in its rows, (1, N).
        index: Packed position of each token of each row, (B, W); 0 on padding.
        spans: For each row, the index of its first new token (the first that it does not share with the previous row),
            and its number of tokens.
    """

    ids: Tensor
    labels: Tensor
    positions: Tensor
    index: Tensor
    spans: list[tuple[int, int]]
    _calls: list[_Call]
    _order: Tensor
    _masks: dict[torch.dtype, list[Tensor | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Sequence[Ids], labels: NDArray[np.int64], device: torch.device | str) -> PrefixTree:
        """Create the packed sequence of some rows.

        Args:
            rows: Token ids of each row, in the order of ``by_prefix``.
            labels: Labels of each row, (B, W).
            device: Device of the tensors.
        """
        shared = shared_lengths(rows)
        spans = [(start, len(row)) for start, row in zip(shared, rows, strict=True)]
        index = np.zeros(labels.shape, dtype=np.int64)
        count = 0
        for place, (start, stop) in enumerate(spans):
            index[place, :start] = index[place - 1, :start]
            index[place, start:stop] = np.arange(count, count + stop - start)
            count += stop - start
        packed = np.full(count, IGNORED, dtype=np.int64)
        row, column = np.nonzero(labels[:, 1:] != IGNORED)
        packed[index[row, column] + 1] = labels[row, column + 1]
        own = [np.arange(start, stop) for start, stop in spans]
        ids = np.array([token for row, (start, _) in zip(rows, spans, strict=True) for token in row[start:]])
        calls, order = _attention_calls(spans, index)

        def tensor(array: NDArray[np.int64]) -> Tensor:
            return torch.from_numpy(array).to(device)

        return cls(
            ids=tensor(ids)[None],
            labels=tensor(packed)[None],
            positions=tensor(np.concatenate(own))[None],
            index=tensor(index),
            spans=spans,
            _calls=[
                _Call(tensor(queries), tensor(keys), None if mask is None else torch.from_numpy(mask).to(device))
                for queries, keys, mask in calls
            ],
            _order=tensor(order),
        )

    @property
    def inputs(self) -> dict[str, Any]:
        """Keyword arguments for a model that computes the packed sequence with the attention of ``prefix_sharing``."""
        # transformers makes no mask if the given mask has four dimensions; the attention does not read it.
        mask = torch.ones((1, 1, 1, 1), dtype=torch.bool, device=self.ids.device)
        return {
            "input_ids": self.ids,
            "labels": self.labels,
            "position_ids": self.positions,
            "attention_mask": mask,
            "prefix_tree": self,
        }

    def of_rows(self, values: Tensor, labels: Tensor) -> Tensor:
        """Convert values of the packed sequence, (1, N - 1), to values of the rows' predicted tokens, (B, W - 1).

        Args:
            values: One value for each predicted token of the packed sequence.
            labels: Labels of the rows, (B, W).
        """
        at = self.index[:, :-1].clamp(max=values.shape[1] - 1)
        found = values[0].index_select(0, at.flatten()).view(at.shape)
        return torch.where(labels[:, 1:] != IGNORED, found, 0.0)

    def hidden_of_rows(self, hidden: Tensor) -> Tensor:
        """Return the hidden states of the rows, (B, W, H), from the hidden states of the packed sequence, (1, N, H)."""
        return hidden[0].index_select(0, self.index.flatten()).view(*self.index.shape, -1)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> Tensor:
        """Return the attention of the packed sequence.

        Args:
            query: (1, heads, N, D).
            key: (1, key heads, N, D); the number of heads is a multiple of the number of key heads.
            value: Like ``key``.
            scale: Factor of the scores; ``None`` is 1/sqrt(D).

        Returns:
            (1, N, heads, D of the values).
        """
        if query.dtype not in self._masks:
            self._masks[query.dtype] = [_additive(call.mask, query.dtype) for call in self._calls]
        repeats = query.shape[1] // key.shape[1]
        found = []
        for call, mask in zip(self._calls, self._masks[query.dtype], strict=True):
            output = functional.scaled_dot_product_attention(
                _chosen(query, call.queries),
                _chosen(key, call.keys, repeats),
                _chosen(value, call.keys, repeats),
                attn_mask=mask,
                is_causal=mask is None,
                scale=scale,
            )
            found.append(output.transpose(1, 2).flatten(0, 1))
        return torch.cat(found).index_select(0, self._order)[None]


def _additive(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    # Made once: with a boolean mask, torch makes an additive one in every layer.
    return None if mask is None else torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, -torch.inf)


def _chosen(values: Tensor, index: Tensor, repeats: int = 1) -> Tensor:
    """Return the values at packed positions, (C, heads * repeats, L, D), each head repeated ``repeats`` times.

    Args:
        values: (1, heads, N, D).
        index: Packed positions, (C, L).
        repeats: Number of query heads per key head.
    """
    found = values[0].transpose(0, 1).index_select(0, index.flatten())
    if repeats > 1:
        found = found.repeat_interleave(repeats, dim=1)
    return found.view(*index.shape, *found.shape[1:]).transpose(1, 2)


_ArrayCall = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_] | None]


def _attention_calls(
    spans: Sequence[tuple[int, int]], index: NDArray[np.int64]
) -> tuple[list[_ArrayCall], NDArray[np.int64]]:
    """Divide the attention of a packed sequence into calls; the arguments are fields of ``PrefixTree``.

    Returns:
        Queries, keys and mask of each call, and the place of each packed token in the calls' joined outputs.
    """
    order = np.zeros(sum(stop - start for start, stop in spans), dtype=np.int64)
    calls: list[_ArrayCall] = []
    done = 0
    for bucket in attention_calls(spans):
        firsts = np.array([first for _, first, _ in bucket])
        width = max(end - first for _, first, end in bucket)
        longest = max(end for _, _, end in bucket)
        queries = np.zeros((len(bucket), width), dtype=np.int64)
        keys = np.zeros((len(bucket), longest), dtype=np.int64)
        for place, (row, first, end) in enumerate(bucket):
            queries[place, : end - first] = index[row, first:end]
            keys[place, :end] = index[row, :end]
            order[index[row, first:end]] = done + np.arange(end - first)
            done += width
        mask = None
        if firsts.any():
            # Chunks that begin at the same token have the same mask. A padded query has a key, so that it is finite.
            begin = firsts[:1] if (firsts == firsts[0]).all() else firsts
            rows = begin[:, None, None] + np.arange(width)[None, :, None]
            mask = (np.arange(longest)[None, None, :] <= rows)[:, None]
        calls.append((queries, keys, mask))
    return calls, order
