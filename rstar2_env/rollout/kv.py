"""A batched KV cache whose rows come and go: the memory of ``TransformersEngine``.

Covered: models whose layers all attend to everything (transformers' ``DynamicLayer``). Not covered: sliding windows and
recurrent layers; ``supports`` says so, and the engine then runs one batch after the other.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import DynamicCache, PreTrainedConfig
from transformers.cache_utils import DynamicLayer

_ROOM = 64
"""Tokens by which a full buffer grows."""


class GrowingLayer(DynamicLayer):
    """Keys and values of one layer, (rows, heads, tokens, head size), in a buffer with room to grow.

    transformers' own layer copies the whole cache for every new token.
    """

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append the new tokens; return all keys and values."""
        if not self.is_initialized or self.keys is None or self.keys.numel() == 0:
            self.lazy_initialization(key_states, value_states)
            self._take(key_states, value_states)
            return self.keys, self.values
        old, new = self.keys.shape[2], key_states.shape[2]
        if old + new > self._buffers[0].shape[2]:
            self._take(self.keys, self.values, room=max(_ROOM, new))
        for buffer, states in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[:, :, old : old + new] = states
        self.keys, self.values = (buffer[:, :, : old + new] for buffer in self._buffers)
        return self.keys, self.values

    def _take(self, keys: Tensor, values: Tensor, room: int = _ROOM) -> None:
        tokens = keys.shape[2]
        self._buffers = [pad(states, (0, 0, 0, room)) for states in (keys, values)]
        self.keys, self.values = (buffer[:, :, :tokens] for buffer in self._buffers)

    def replace(self, keys: Tensor, values: Tensor) -> None:
        """Hold these keys and values instead."""
        self.lazy_initialization(keys, values)
        self._take(keys, values)


def supports(config: PreTrainedConfig) -> bool:
    """Whether every layer of such a model keeps a plain cache, so that rows can join and leave."""
    return all(type(layer) is DynamicLayer for layer in DynamicCache(config=config).layers)


def growing_cache(config: PreTrainedConfig) -> DynamicCache:
    """An empty cache of growing layers for such a model."""
    cache = DynamicCache(config=config)
    cache.layers = [GrowingLayer() for _ in cache.layers]
    return cache


def select_rows(cache: DynamicCache, rows: Tensor, skip: int) -> None:
    """Keep these rows, in this order, without their first ``skip`` positions."""
    for layer in cache.layers:
        layer.replace(layer.keys[rows, :, skip:], layer.values[rows, :, skip:])


def join(first: DynamicCache, second: DynamicCache) -> None:
    """Add the rows of ``second`` below those of ``first``; the shorter is padded on the left."""
    for one, two in zip(first.layers, second.layers, strict=True):
        width = max(one.keys.shape[2], two.keys.shape[2])
        keys, values = (
            torch.cat([pad(states, (0, 0, width - states.shape[2], 0)) for states in pair])
            for pair in ((one.keys, two.keys), (one.values, two.values))
        )
        one.replace(keys, values)
