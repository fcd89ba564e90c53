"""What ``TransformersEngine`` remembers between turns: caches of token sequences, found by how they begin.

A conversation's next prompt begins with all that was computed for it so far, so an entry is found by its ids, exactly,
and nobody has to name a conversation. An entry serves as far as its ids agree with the prompt: the turns that follow
it, another episode of the same group, another prompt under the same system message.

Covered: finding the longest common beginning, and letting go of the entries used longest ago. Not covered: sharing
memory between entries that begin alike (each holds a copy of its own).
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
"""Token ids as bytes, so that comparing two sequences is one call."""

_ID = array("i").itemsize

KeysValues = tuple[Tensor, Tensor]
"""Keys and values of one sequence in one layer, (heads, tokens, head size) each."""

Layers = Sequence["KeysValues | None"]
"""Those of every layer; ``None`` for one without keys of its own."""


def key_of(ids: Sequence[int]) -> Key:
    """The ids as a key."""
    return array("i", ids).tobytes()


class PrefixIndex(Generic[V]):
    """A mapping by key that finds the one with the longest common beginning, in logarithmic time."""

    def __init__(self) -> None:
        # In the order of their bytes, the key that shares most with another is a neighbour of its place.
        self._keys: list[Key] = []
        self._values: dict[Key, V] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: Key) -> bool:
        return key in self._values

    def add(self, key: Key, value: V) -> None:
        """Put a value under a new key."""
        self._keys.insert(bisect_left(self._keys, key), key)
        self._values[key] = value

    def pop(self, key: Key) -> V:
        """Take out the value of a key that is there."""
        del self._keys[bisect_left(self._keys, key)]
        return self._values.pop(key)

    def get(self, key: Key) -> V | None:
        """The value of a key, if it is there."""
        return self._values.get(key)

    def best(self, key: Key) -> tuple[V | None, int]:
        """The value whose key agrees longest with this one, and on how many tokens."""
        longest, found = 0, None
        for neighbour in self.neighbours(key):
            common = _common(neighbour, key)
            if common > longest:
                longest, found = common, self._values[neighbour]
        return found, longest

    def neighbours(self, key: Key) -> list[Key]:
        """The last key up to this one and the first after it, if there are such."""
        place = bisect_right(self._keys, key)
        return self._keys[max(0, place - 1) : place + 1]

    def clear(self) -> None:
        """Forget everything."""
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
        """How many."""
        return len(self.key) // _ID


class PrefixPool:
    """Caches of token sequences that no request uses, none of which begins another.

    Attributes:
        tokens: Tokens of all entries together.
    """

    def __init__(self) -> None:
        self._index: PrefixIndex[Kept] = PrefixIndex()
        self._by_use: OrderedDict[Key, Kept] = OrderedDict()
        self.tokens = 0

    def __len__(self) -> int:
        return len(self._by_use)

    def best(self, key: Key) -> tuple[Kept | None, int]:
        """The entry that agrees longest with a key, and on how many tokens; it counts as used now."""
        entry, common = self._index.best(key)
        if entry is not None:
            self._by_use.move_to_end(entry.key)
        return entry, common

    def keep(self, key: Key, layers: Callable[[], Layers], room: int) -> None:
        """Keep a sequence, and let go of those used longest ago.

        Args:
            key: The ids; entries that they begin with are superseded.
            layers: Copies the keys and values; called only when they are wanted.
            room: Most tokens of all entries together.
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
        """Let go of one entry, if it is there."""
        if key in self._index:
            self.tokens -= self._index.pop(key).tokens
            del self._by_use[key]

    def shrink(self, room: int) -> None:
        """Let go of entries, those used longest ago first, until no more tokens than ``room`` are left."""
        while self._by_use and self.tokens > room:
            self.drop(next(iter(self._by_use)))

    def clear(self) -> None:
        """Let go of all."""
        self._index.clear()
        self._by_use.clear()
        self.tokens = 0


def _common(one: Key, other: Key) -> int:
    """Tokens that two sequences begin with alike."""
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
