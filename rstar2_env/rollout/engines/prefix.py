"""The sequences whose caches ``TransformersEngine`` keeps between turns, searched by the longest common prefix.

The next prompt of a conversation begins with all of its tokens so far, so token ids suffice to find its kept sequence.
The common prefix of a kept sequence and a new prompt is reused: for the next turn of an episode, for other episodes of
its group, and for other prompts with the same system message.

Covered: finding the longest common prefix and the least recently used sequence. Not covered: the keys and values
themselves, which are in ``slots.py``; each sequence has its own copy, common prefixes included.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

V = TypeVar("V")

Key = bytes
"""Token ids packed as bytes, so that two sequences can be compared in one operation."""

_ID = array("i").itemsize


def key_of(ids: Sequence[int]) -> Key:
    """Return token ids as bytes, for use as a dictionary key."""
    return array("i", ids).tobytes()


class PrefixIndex(Generic[V]):
    """A mapping that can find the key that shares the longest prefix with a given key, in logarithmic time."""

    def __init__(self) -> None:
        # In sorted order, the key with the longest common prefix is adjacent to the position of the search key.
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
        """Return the value of a key; ``None`` if the key is absent."""
        return self._values.get(key)

    def best(self, key: Key) -> tuple[V | None, int]:
        """Return the value whose key has the longest common prefix with ``key``, and the number of common tokens.

        Return ``None`` and 0 if no key begins with the same token.
        """
        longest, found = 0, None
        for neighbour in self.neighbours(key):
            common = _common(neighbour, key)
            if common > longest:
                longest, found = common, self._values[neighbour]
        return found, longest

    def neighbours(self, key: Key) -> list[Key]:
        """Return the largest key that is not after ``key``, and the smallest key after it, if they exist."""
        place = bisect_right(self._keys, key)
        return self._keys[max(0, place - 1) : place + 1]

    def clear(self) -> None:
        """Remove all keys."""
        self._keys.clear()
        self._values.clear()


@dataclass(eq=False, slots=True)
class CachedSequence:
    """A token sequence whose keys and values are kept.

    Attributes:
        key: The token ids of the sequence.
        slot: The cache slot that has the keys and values.
        number: Time of the last use: a number that the caller passes, larger at later times.
    """

    key: Key
    slot: int
    number: int = 0

    @property
    def tokens(self) -> int:
        """Number of tokens of the sequence."""
        return len(self.key) // _ID


class PrefixPool:
    """Kept token sequences that no request uses; no entry is a prefix of another.

    Attributes:
        tokens: Number of tokens of all entries together.
    """

    def __init__(self) -> None:
        self._index: PrefixIndex[CachedSequence] = PrefixIndex()
        self._by_use: OrderedDict[Key, CachedSequence] = OrderedDict()
        self.tokens = 0

    def __len__(self) -> int:
        return len(self._by_use)

    def __iter__(self) -> Iterator[CachedSequence]:
        """The entries, the least recently used first."""
        return iter(self._by_use.values())

    def __contains__(self, entry: CachedSequence) -> bool:
        return self._by_use.get(entry.key) is entry

    @property
    def oldest(self) -> CachedSequence:
        """The least recently used entry; the pool must not be empty."""
        return next(iter(self))

    def best(self, key: Key, number: int = 0) -> tuple[CachedSequence | None, int]:
        """Find the entry that shares the longest prefix with ``key``, and mark it as used.

        Args:
            key: The token ids of a prompt.
            number: The current time, as in ``CachedSequence.number``.

        Returns:
            The entry, or ``None``, and the number of common tokens.
        """
        entry, common = self._index.best(key)
        if entry is not None:
            self._use(entry, number)
        return entry, common

    def keep(self, key: Key, slot: int, number: int = 0) -> list[int]:
        """Keep a sequence, and drop the entries that are prefixes of that sequence.

        Args:
            key: The token ids of the sequence.
            slot: The cache slot with the keys and values of the sequence.
            number: The current time, as in ``CachedSequence.number``.

        Returns:
            The slots that become free: the slots of the prefixes, or ``slot`` if the sequence itself is a prefix of
            an entry.
        """
        free = []
        for neighbour in self._index.neighbours(key):
            if neighbour.startswith(key):
                self._use(self._by_use[neighbour], number)
                return [slot]
            if key.startswith(neighbour):
                free.append(self.drop(self._by_use[neighbour]))
        entry = CachedSequence(key, slot, number)
        self._index.add(key, entry)
        self._by_use[key] = entry
        self.tokens += entry.tokens
        return free

    def drop(self, entry: CachedSequence) -> int:
        """Remove an entry, and return its cache slot."""
        self._index.pop(entry.key)
        del self._by_use[entry.key]
        self.tokens -= entry.tokens
        return entry.slot

    def drop_oldest(self) -> int:
        """Remove the least recently used entry, and return its cache slot."""
        return self.drop(self.oldest)

    def _use(self, entry: CachedSequence, number: int) -> None:
        entry.number = number
        self._by_use.move_to_end(entry.key)

    def clear(self) -> list[int]:
        """Remove all entries, and return their cache slots."""
        slots = [entry.slot for entry in self]
        self._index.clear()
        self._by_use.clear()
        self.tokens = 0
        return slots


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
