"""A batched KV cache whose rows come and go: the memory of ``TransformersEngine``.

Every layer keeps its keys and values in a buffer with room for more tokens and more rows, so that a new token copies
itself alone, and a row that joins is written into the place of one that left. transformers' own layer copies the whole
cache for every new token.

Covered: models whose layers all attend to everything (transformers' ``DynamicLayer``). Not covered: sliding windows and
recurrent layers; ``supports`` says so, and the engine then runs one batch after the other.
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
"""Tokens that a fresh buffer has room for beyond those it holds."""


class RowLayer(DynamicLayer):
    """Keys and values of one layer, (rows, heads, tokens, head size), as views of buffers with room to grow."""

    keys: Tensor
    values: Tensor

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append the new tokens of every row; return all keys and values."""
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
        """Hold a copy of these keys and values instead, with that much room."""
        # Room is zeroed: a stray NaN would survive even a weight of zero.
        self._buffers = [pad(states, (0, 0, 0, room, 0, 0, 0, spare_rows)) for states in (keys, values)]
        self._show(keys.shape[0], keys.shape[2])

    def put(self, slots: Tensor, keys: Tensor, values: Tensor, rows: int) -> None:
        """Write rows into slots, their last tokens beside everybody's last; ``rows`` is how many there are then."""
        tokens, new = self.keys.shape[2], keys.shape[2]
        for buffer, states in zip(self._buffers, (keys, values), strict=True):
            buffer[slots, :, tokens - new : tokens] = states
        self._show(rows, tokens)

    def begin(self, pieces: Sequence[KeysValues | None], tokens: int, room: int) -> None:
        """Hold ``tokens`` columns whose last are these pieces, a row each, with room for as many again as given."""
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
        """Rows that the buffers have room for."""
        return int(self._buffers[0].shape[0])

    def _show(self, rows: int, tokens: int) -> None:
        self.keys, self.values = (buffer[:rows, :, :tokens] for buffer in self._buffers)


class RowCache:
    """The cache of a batch, all layers together.

    Args:
        config: The model's configuration.

    Attributes:
        hf: The object that the model is called with.
    """

    def __init__(self, config: PreTrainedConfig) -> None:
        self.hf = DynamicCache(config=config)
        self.hf.layers = [RowLayer() for _ in self.hf.layers]

    @property
    def tokens(self) -> int:
        """Tokens that every row holds, padding on the left included."""
        return next((layer.keys.shape[2] for layer in self._layers), 0)

    @property
    def full(self) -> bool:
        """Whether one more token makes the buffers grow."""
        return any(layer.keys.shape[2] == layer._buffers[0].shape[2] for layer in self._layers)

    def select(self, rows: Tensor, skip: int) -> None:
        """Keep these rows, in this order, without their first ``skip`` tokens."""
        for layer in self._layers:
            layer.hold(layer.keys[rows, :, skip:], layer.values[rows, :, skip:])

    def put(self, slots: Tensor, other: RowCache, rows: int) -> None:
        """Write the rows of ``other`` into slots; there are ``rows`` then. The shorter is padded on the left."""
        for layer, new in zip(self._layers, other._layers, strict=True):
            left = max(0, new.keys.shape[2] - layer.keys.shape[2])
            spare = max(0, rows - layer.row_capacity)
            if left or spare:
                wide = (pad(states, (0, 0, left, 0)) for states in (layer.keys, layer.values))
                # Half as many rows again, lest a batch that grows row by row be copied for each.
                layer.hold(*wide, spare_rows=rows - layer.keys.shape[0] + (rows // 2 if spare else 0))
            layer.put(slots, new.keys, new.values, rows)

    def begin(self, pieces: Sequence[Layers | None], tokens: int, room: int) -> None:
        """Hold ``tokens`` columns, computed earlier: the last of each row are its piece, which may be none or short."""
        for number, layer in enumerate(self.hf.layers):
            assert isinstance(layer, RowLayer)  # __init__ made them
            layer.begin([None if piece is None else piece[number] for piece in pieces], tokens, room + TOKEN_ROOM)

    def view(self, row: int, start: int, stop: int) -> Layers:
        """Keys and values of a row's tokens, as views that change with the cache."""
        return [
            (layer.keys[row, :, start:stop], layer.values[row, :, start:stop]) if layer.is_initialized else None
            for layer in self.hf.layers
            if isinstance(layer, RowLayer)
        ]

    @property
    def _layers(self) -> Iterator[RowLayer]:
        # A layer that shares another's cache never gets any keys of its own.
        return (layer for layer in self.hf.layers if isinstance(layer, RowLayer) and layer.is_initialized)


def crop(layers: Layers, tokens: int) -> Layers:
    """The first tokens of a sequence, as views."""
    return [None if pair is None else (pair[0][:, :tokens], pair[1][:, :tokens]) for pair in layers]


def copied(layers: Layers) -> Layers:
    """Copies that hold no more memory than they need."""
    return [None if pair is None else (pair[0].clone(), pair[1].clone()) for pair in layers]


def supports(config: PreTrainedConfig) -> bool:
    """Whether every layer of such a model keeps a plain cache, so that rows can join and leave."""
    layers = DynamicCache(config=config).layers
    return bool(layers) and all(type(layer) is DynamicLayer for layer in layers)


def reusable(config: PreTrainedConfig) -> bool:
    """Whether a token's keys do not depend on how many tokens follow, as some rotary embeddings' do."""
    text = config.get_text_config()
    rope = getattr(text, "rope_parameters", None) or getattr(text, "rope_scaling", None) or {}
    return not any(kind in ("dynamic", "longrope") for kind in _rope_types(rope))


def _rope_types(rope: Mapping[str, Any]) -> list[Any]:
    # Some models have one set of parameters for each type of layer.
    kinds = [rope.get("rope_type", rope.get("type"))]
    return kinds + [kind for part in rope.values() if isinstance(part, Mapping) for kind in _rope_types(part)]


def room_for_tokens(model: PreTrainedModel) -> int:
    """Tokens whose caches fit into a quarter of the free memory (on a CPU: of the machine's), at most 2**20."""
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
