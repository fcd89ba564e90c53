"""The key-value cache of ``TransformersEngine``, with one slot for each sequence.

Every layer has a buffer of slots. A sequence stays in its slot from its first token until it is dropped, even while it
waits for its next turn, and a new token is written in place. Data is copied only when the buffers grow, when two
sequences share a prefix, and when slots are swapped.

Covered: models whose layers all attend to all earlier tokens (transformers' ``DynamicLayer``). Not covered: sliding
windows and recurrent layers; see ``supports``.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedConfig
from transformers.cache_utils import DynamicLayer


class SlotLayer(DynamicLayer):
    """Keys and values of one layer, (slots, heads, columns, head size) each.

    Args:
        cache: The cache that the layer belongs to.
    """

    keys: Tensor
    values: Tensor

    def __init__(self, cache: SlotCache) -> None:
        super().__init__()
        # In a reference cycle, the buffers would stay in memory until Python's next collection of garbage.
        self._cache: SlotCache = weakref.proxy(cache)

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Write the new keys and values of a forward pass into the cache; return all cached keys and values.

        Args:
            key_states: New keys, (1, heads, tokens, head size).
            value_states: New values, with the same shape except for the head size.
            *args: Ignored; part of transformers' interface.
            **kwargs: Ignored; part of transformers' interface.
        """
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            # Zeros, since a NaN in an unused column would propagate even with an attention weight of zero.
            self.keys, self.values = (
                _zeros(states, self._cache.slots, states.shape[1], self._cache.columns, states.shape[3])
                for states in (key_states, value_states)
            )
        places = self._cache.places(key_states.shape[1])
        for buffer, states in ((self.keys, key_states), (self.values, value_states)):
            size = states.shape[3]
            buffer.view(-1, size).index_copy_(0, places, states[0].transpose(0, 1).reshape(-1, size))
        return self.keys, self.values

    def get_seq_length(self) -> int:
        """Return 0: a pass holds tokens of several sequences, which have different numbers of earlier tokens."""
        return 0


class SlotCache:
    """The key-value cache of all sequences, over all layers.

    Args:
        config: The model's configuration.

    Attributes:
        hf: The cache object to pass to the model.
        slots: Number of slots.
        columns: Number of tokens that each slot can hold.
    """

    def __init__(self, config: PreTrainedConfig) -> None:
        self.hf = DynamicCache(config=config)
        self.hf.layers = [SlotLayer(self) for _ in self.hf.layers]
        self.slots = self.columns = 0
        self._tokens = torch.zeros(2, 0, dtype=torch.long)
        self._places: dict[int, Tensor] = {}

    def write_to(self, slots: Sequence[int], positions: Sequence[int], device: torch.device) -> None:
        """Set where in the cache the next forward pass writes the keys and values of its tokens.

        Args:
            slots: The slot of each token.
            positions: The position of each token in its slot.
            device: Device of the model.
        """
        self._tokens = torch.tensor([slots, positions], device=device)
        self._places = {}

    def places(self, heads: int) -> Tensor:
        """Return, for each head of each token, its row in a layer's flattened buffer: shape (tokens * heads,)."""
        if heads not in self._places:
            slots, positions = self._tokens[:, :, None]
            own = torch.arange(heads, device=slots.device)
            self._places[heads] = ((slots * heads + own) * self.columns + positions).flatten()
        return self._places[heads]

    @property
    def bytes(self) -> int:
        """Size of all buffers in bytes."""
        return sum(buffer.nbytes for buffer in self._buffers)

    def resize(self, order: Sequence[int], tokens: int, slots: int, columns: int) -> None:
        """Change the number of slots and columns (token positions per slot), keeping some of the slots.

        Args:
            order: The slots to keep; they become the first slots, in this order.
            tokens: Length of the longest sequence in these slots.
            slots: New number of slots.
            columns: New number of columns.
        """
        for layer in self._layers:
            # One buffer at a time, so that only one of them exists twice.
            for name in ("keys", "values"):
                old: Tensor = getattr(layer, name)
                new = _zeros(old, slots, old.shape[1], columns, old.shape[3])
                _copy_slots(old, order, new, range(len(order)), tokens)
                setattr(layer, name, new)
        self.slots, self.columns = slots, columns

    def copy(self, source: int, targets: Sequence[int], tokens: int) -> None:
        """Copy the first ``tokens`` tokens of one slot to several other slots."""
        for buffer in self._buffers:
            _copy_slots(buffer, [source], buffer, targets, tokens)

    def move(self, sources: Sequence[int], targets: Sequence[int], tokens: int) -> None:
        """Copy the first ``tokens`` tokens of each source slot to a target slot, whose contents are overwritten."""
        for buffer in self._buffers:
            _copy_slots(buffer, sources, buffer, targets, tokens)

    def exchange(self, ones: Sequence[int], others: Sequence[int], tokens: int) -> None:
        """Swap the first ``tokens`` tokens between each slot in ``ones`` and the slot in ``others``, pair by pair."""
        self.move([*ones, *others], [*others, *ones], tokens)

    @property
    def _buffers(self) -> Iterator[Tensor]:
        return (buffer for layer in self._layers for buffer in (layer.keys, layer.values))

    @property
    def _layers(self) -> list[SlotLayer]:
        return [layer for layer in self.hf.layers if isinstance(layer, SlotLayer) and layer.is_initialized]


def _copy_slots(source: Tensor, order: Sequence[int], target: Tensor, places: Sequence[int], tokens: int) -> None:
    """Copy the first ``tokens`` tokens of each slot in ``order`` to the slot in ``places``, pair by pair.

    ``order`` may instead be one slot, which is copied to all of ``places``.
    """
    if not order:
        return
    if source.device.type == "cpu":
        # NumPy copies the tokens of a head at once; torch copies number by number.
        kind: Any = getattr(torch, f"int{8 * source.element_size()}")
        target.view(kind).numpy()[list(places), :, :tokens] = source.view(kind).numpy()[list(order), :, :tokens]
        return
    here, there = (torch.tensor(list(slots), device=source.device) for slots in (order, places))
    states = source[:, :, :tokens].index_select(0, here).expand(len(places), -1, -1, -1)
    target[:, :, :tokens].index_copy_(0, there, states)


def _zeros(like: Tensor, *shape: int) -> Tensor:
    """Zeros of the type and on the device of another tensor."""
    if like.device.type != "cpu":
        return like.new_zeros(*shape)
    # NumPy allocates zeros lazily and in large pages; torch writes them immediately.
    kind = np.dtype(f"u{like.element_size()}")
    return torch.from_numpy(np.zeros(shape, kind)).view(like.dtype)


def supports(config: PreTrainedConfig) -> bool:
    """Whether every layer of a model has a plain key-value cache, so that sequences can be added, cut and removed."""
    layers = DynamicCache(config=config).layers
    return bool(layers) and all(type(layer) is DynamicLayer for layer in layers)


def reusable(config: PreTrainedConfig) -> bool:
    """Whether a token's keys stay valid when more tokens follow; with some rotary embeddings they change."""
    text = config.get_text_config()
    rope = getattr(text, "rope_parameters", None) or getattr(text, "rope_scaling", None) or {}
    return not any(kind in ("dynamic", "longrope") for kind in _rope_types(rope))


def _rope_types(rope: Mapping[str, Any]) -> list[Any]:
    # Some models have one set of parameters for each type of layer.
    kinds = [rope.get("rope_type", rope.get("type"))]
    return kinds + [kind for part in rope.values() if isinstance(part, Mapping) for kind in _rope_types(part)]
