"""A batched KV cache to which rows can be added and from which they can be removed; used by ``TransformersEngine``.

Every layer keeps its keys and values in a buffer with room for more tokens and more rows. A new token is copied alone,
and a row that joins is written into the place of one that left. transformers' own layer copies the whole cache for
every new token.

Covered: models whose layers all attend to everything (transformers' ``DynamicLayer``). Not covered: sliding windows and
recurrent layers; ``supports`` returns ``False`` for them, and the engine then runs one batch after the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import DynamicCache, PreTrainedConfig, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from rstar2_env.rollout.engines.prefix import KeysValues, Layers

TOKEN_ROOM = 64
"""Room of a new buffer beyond the tokens that it holds, in tokens."""


class RowLayer(DynamicLayer):
    """Keys and values of one layer, (rows, heads, tokens, head size), as views of larger buffers."""

    keys: Tensor
    values: Tensor

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append the new tokens of every row; return all keys and values.

        Args:
            key_states: New keys, (rows, heads, new tokens, head size).
            value_states: New values, of the same shape.
            *args: Ignored; part of transformers' interface.
            **kwargs: Ignored; part of transformers' interface.
        """
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.hold(key_states, value_states)
            return self.keys, self.values
        rows, _, old, _ = self.keys.shape
        new = key_states.shape[2]
        if old + new > self._buffers[0].shape[2]:
            self.hold(self.keys, self.values, room=max(TOKEN_ROOM, new))
        for buffer, states in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[:rows, :, old : old + new] = states
        self._show(rows, old + new)
        return self.keys, self.values

    def hold(self, keys: Tensor, values: Tensor, *, spare_rows: int = 0, room: int = TOKEN_ROOM) -> None:
        """Replace the contents by a copy of these keys and values.

        Args:
            keys: (rows, heads, tokens, head size).
            values: Of the same shape.
            spare_rows: Room for further rows.
            room: Room for further tokens in each row.
        """
        # The spare room is zeroed: a NaN in it would survive even an attention weight of zero.
        self._buffers = [pad(states, (0, 0, 0, room, 0, 0, 0, spare_rows)) for states in (keys, values)]
        self._show(keys.shape[0], keys.shape[2])

    def put(self, slots: Tensor, keys: Tensor, values: Tensor, rows: int) -> None:
        """Write rows into slots, aligned at the last token.

        Args:
            slots: Indices of the rows to write, (new rows,).
            keys: (new rows, heads, tokens, head size), with at most as many tokens as the layer holds.
            values: Of the same shape.
            rows: Number of rows of the layer afterwards.
        """
        tokens, new = self.keys.shape[2], keys.shape[2]
        for buffer, states in zip(self._buffers, (keys, values), strict=True):
            buffer[slots, :, tokens - new : tokens] = states
        self._show(rows, tokens)

    def begin(self, pieces: Sequence[KeysValues | None], tokens: int, room: int) -> None:
        """Replace the contents by one row for each piece, aligned at the last token.

        Args:
            pieces: Keys and values of each row, (heads, tokens, head size) each; ``None`` for a row without any.
            tokens: Number of columns; rows with shorter pieces are padded on the left.
            room: Room for further tokens in each row.
        """
        like = next((piece for piece in pieces if piece is not None), None)
        if like is None:
            return
        self.lazy_initialization(*like)
        self._buffers = []
        for which, states in enumerate(like):
            heads, _, size = states.shape
            buffer = states.new_zeros(len(pieces), heads, tokens + room, size)
            for row, piece in enumerate(pieces):
                if piece is not None:
                    buffer[row, :, tokens - piece[which].shape[1] : tokens] = piece[which]
            self._buffers.append(buffer)
        self._show(len(pieces), tokens)

    @property
    def row_capacity(self) -> int:
        """Number of rows that the buffers have room for."""
        return int(self._buffers[0].shape[0])

    def _show(self, rows: int, tokens: int) -> None:
        self.keys, self.values = (buffer[:rows, :, :tokens] for buffer in self._buffers)


class RowCache:
    """The cache of a batch, all layers together.

    Args:
        config: The model's configuration.

    Attributes:
        hf: The cache object to pass to the model.
    """

    def __init__(self, config: PreTrainedConfig) -> None:
        self.hf = DynamicCache(config=config)
        self.hf.layers = [RowLayer() for _ in self.hf.layers]

    @property
    def tokens(self) -> int:
        """Number of tokens of every row, including padding on the left."""
        return next((layer.keys.shape[2] for layer in self._layers), 0)

    @property
    def full(self) -> bool:
        """Whether the buffers have no room for one more token."""
        return any(layer.keys.shape[2] == layer._buffers[0].shape[2] for layer in self._layers)

    def select(self, rows: Tensor, skip: int) -> None:
        """Keep these rows, in this order, without their first ``skip`` tokens."""
        for layer in self._layers:
            layer.hold(layer.keys[rows, :, skip:], layer.values[rows, :, skip:])

    def put(self, slots: Tensor, other: RowCache, rows: int) -> None:
        """Write the rows of another cache into slots; the shorter of the two is padded on the left.

        Args:
            slots: Indices of the rows to write, (rows of ``other``,).
            other: The cache to copy from.
            rows: Number of rows of this cache afterwards.
        """
        for layer, new in zip(self._layers, other._layers, strict=True):
            left = max(0, new.keys.shape[2] - layer.keys.shape[2])
            spare = max(0, rows - layer.row_capacity)
            if left or spare:
                wide = (pad(states, (0, 0, left, 0)) for states in (layer.keys, layer.values))
                # Room for half as many rows again, so that a batch that grows row by row is not copied for each.
                layer.hold(*wide, spare_rows=rows - layer.keys.shape[0] + (rows // 2 if spare else 0))
            layer.put(slots, new.keys, new.values, rows)

    def begin(self, pieces: Sequence[Layers | None], tokens: int, room: int) -> None:
        """Replace the contents by one row for each piece, aligned at the last token.

        Args:
            pieces: Keys and values of each row, computed earlier; ``None`` for a row without any.
            tokens: Number of columns; rows with shorter pieces are padded on the left.
            room: Room for further tokens in each row, beyond ``TOKEN_ROOM``.
        """
        for number, layer in enumerate(self.hf.layers):
            assert isinstance(layer, RowLayer)  # __init__ made them
            layer.begin([None if piece is None else piece[number] for piece in pieces], tokens, room + TOKEN_ROOM)

    def view(self, row: int, start: int, stop: int) -> Layers:
        """Keys and values of a range of a row's tokens, as views that change with the cache.

        Args:
            row: Index of the row.
            start: First column.
            stop: Column after the last one.
        """
        return [
            (layer.keys[row, :, start:stop], layer.values[row, :, start:stop]) if layer.is_initialized else None
            for layer in self.hf.layers
            if isinstance(layer, RowLayer)
        ]

    @property
    def _layers(self) -> Iterator[RowLayer]:
        # A layer that shares another layer's cache never gets keys of its own.
        return (layer for layer in self.hf.layers if isinstance(layer, RowLayer) and layer.is_initialized)


def crop(layers: Layers, tokens: int) -> Layers:
    """The first tokens of a sequence, as views."""
    return [None if pair is None else (pair[0][:, :tokens], pair[1][:, :tokens]) for pair in layers]


def copied(layers: Layers) -> Layers:
    """Copies that do not keep the larger buffers alive."""
    return [None if pair is None else (pair[0].clone(), pair[1].clone()) for pair in layers]


def supports(config: PreTrainedConfig) -> bool:
    """Whether every layer of such a model has a plain cache, so that rows can be added and removed."""
    layers = DynamicCache(config=config).layers
    return bool(layers) and all(type(layer) is DynamicLayer for layer in layers)


def reusable(config: PreTrainedConfig) -> bool:
    """Whether a token's keys are independent of the number of tokens after it (not so with some rotary embeddings)."""
    text = config.get_text_config()
    rope = getattr(text, "rope_parameters", None) or getattr(text, "rope_scaling", None) or {}
    return not any(kind in ("dynamic", "longrope") for kind in _rope_types(rope))


def _rope_types(rope: Mapping[str, Any]) -> list[Any]:
    # Some models have one set of parameters for each type of layer.
    kinds = [rope.get("rope_type", rope.get("type"))]
    return kinds + [kind for part in rope.values() if isinstance(part, Mapping) for kind in _rope_types(part)]


def room_for_tokens(model: PreTrainedModel) -> int:
    """Number of tokens whose cache fits into a quarter of the free memory (CPU: of all memory), at most 2**20."""
    most = 1 << 20
    if not supports(model.config):
        return most
    if model.device.type == "cuda":
        memory = torch.cuda.mem_get_info(model.device)[0]
    else:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    config = model.config.get_text_config()
    heads: int = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    size: int = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    token = 2 * int(config.num_hidden_layers) * heads * size * model.dtype.itemsize
    return min(most, max(1, memory // (4 * token)))
