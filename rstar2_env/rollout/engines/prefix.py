"""The caches that ``TransformersEngine`` keeps between turns, found by the longest common prefix of token ids.

A conversation's next prompt begins with everything that was computed for it so far, so an entry is found by its ids,
and conversations need no names. An entry serves as far as its ids agree with the prompt: for the following turns,
another episode of the same group, another prompt with the same system message.

Covered: finding the longest common prefix, and evicting the least recently used entries. Not covered: sharing memory
between entries with a common prefix (each holds a copy of its own).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from torch import Tensor

V = TypeVar("V")

Key = bytes
"""Token ids as bytes, so that two sequences are compared in one call."""

_ID = array("i").itemsize

KeysValues = tuple[Tensor, Tensor]
"""Keys and values of one sequence in one layer, (heads, tokens, head size) each."""

Layers = Sequence["KeysValues | None"]
"""Keys and values of every layer; ``None`` for a layer without keys of its own."""


def key_of(ids: Sequence[int]) -> Key:
    """The ids as a key."""
    return array("i", ids).tobytes()


class PrefixIndex(Generic[V]):
    """A mapping that finds the key with the longest common prefix, in logarithmic time."""

    def __init__(self) -> None:
        # In the order of their bytes, the key with the longest common prefix is a neighbour of a key's place.
        self._keys: list[Key] = []
        self._values: dict[Key, V] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: Key) -> bool:
        return key in self._values

    def add(self, key: Key, value: V) -> None:
        """Add a value under a new key."""
        self._keys.insert(bisect_left(self._keys, key), key)
        self._values[key] = value

    def pop(self, key: Key) -> V:
        """Remove a key that is present, and return its value."""
        del self._keys[bisect_left(self._keys, key)]
        return self._values.pop(key)

    def get(self, key: Key) -> V | None:
        """The value of a key; ``None`` if it is absent."""
        return self._values.get(key)

    def best(self, key: Key) -> tuple[V | None, int]:
        """The value whose key has the longest common prefix with this one, and the number of common tokens."""
        longest, found = 0, None
        for neighbour in self.neighbours(key):
            common = _common(neighbour, key)
            if common > longest:
                longest, found = common, self._values[neighbour]
        return found, longest

    def neighbours(self, key: Key) -> list[Key]:
        """The last key up to this one and the first after it, if they exist."""
        place = bisect_right(self._keys, key)
        return self._keys[max(0, place - 1) : place + 1]

    def clear(self) -> None:
        """Remove all keys."""
        self._keys.clear()
        self._values.clear()


@dataclass(frozen=True, eq=False, slots=True)
class Kept:
    """The cache of one token sequence.

    Attributes:
        key: The ids.
        layers: Their keys and values.
    """

    key: Key
    layers: Layers

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return len(self.key) // _ID


class PrefixPool:
    """Caches of token sequences that no request uses; no entry is a prefix of another.

    Attributes:
        tokens: Number of tokens of all entries together.
    """

    def __init__(self) -> None:
        self._index: PrefixIndex[Kept] = PrefixIndex()
        self._by_use: OrderedDict[Key, Kept] = OrderedDict()
        self.tokens = 0

    def __len__(self) -> int:
        return len(self._by_use)

    def best(self, key: Key) -> tuple[Kept | None, int]:
        """The entry with the longest common prefix, and the number of common tokens; the entry counts as used now."""
        entry, common = self._index.best(key)
        if entry is not None:
            self._by_use.move_to_end(entry.key)
        return entry, common

    def keep(self, key: Key, layers: Callable[[], Layers], room: int) -> None:
        """Keep a sequence, and evict the least recently used ones.

        Args:
            key: The ids; entries that are prefixes of them are removed.
            layers: Returns copies of the keys and values; called only if they are kept.
            room: Maximum number of tokens of all entries together.
        """
        tokens = len(key) // _ID
        for neighbour in self._index.neighbours(key):
            if neighbour.startswith(key):
                self._by_use.move_to_end(neighbour)
                return
            if key.startswith(neighbour):
                self.drop(neighbour)
        if tokens <= room:
            self.shrink(room - tokens)
            entry = Kept(key, layers())
            self._index.add(key, entry)
            self._by_use[key] = entry
            self.tokens += tokens

    def drop(self, key: Key) -> None:
        """Remove one entry, if it is present."""
        if key in self._index:
            self.tokens -= self._index.pop(key).tokens
            del self._by_use[key]

    def shrink(self, room: int) -> None:
        """Evict entries, the least recently used first, until at most ``room`` tokens are left."""
        while self._by_use and self.tokens > room:
            self.drop(next(iter(self._by_use)))

    def clear(self) -> None:
        """Remove all entries."""
        self._index.clear()
        self._by_use.clear()
        self.tokens = 0


def _common(one: Key, other: Key) -> int:
    """Number of tokens of the common prefix of two sequences."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high // _ID
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return low // _ID
