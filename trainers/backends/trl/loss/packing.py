"""Packing: division of rows into micro-batches, as separate padded rows or as prefix trees (``prefix_tree``).

The number of tokens of a micro-batch is limited by a budget. Rows for which a tree costs less than separate rows are
packed by their prefixes, and the others by their lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

Ids = list[int]

_ROWS = 4
"""Largest number of tokens of the rows of a tree, relative to the budget: attention copies the keys of each row."""
_PAIR = 0.25
"""Cost of a pair of a query and a key, times the width of the model, in tokens. By operations it is 1/6; attention is
slower than the products of weights."""
_OVERHEAD = 1.1
"""Cost of a tree relative to separate rows with as many tokens and pairs: its keys and queries are copied."""


def pack(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Sort rows by length, longest first, and divide them into micro-batches of at most ``budget`` tokens.

    Args:
        lengths: Number of tokens of each row.
        budget: Maximum number of tokens in one micro-batch (rows times the longest); a longer row gets its own
            micro-batch.

    Returns:
        The positions of the rows of each micro-batch.
    """
    batches: list[list[int]] = []
    width = 0
    for position in sorted(range(len(lengths)), key=lambda at: -lengths[at]):
        if batches and (len(batches[-1]) + 1) * width <= budget:
            batches[-1].append(position)
        else:
            batches.append([position])
            width = lengths[position]
    return batches


def even_out(batches: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """Raise the number of micro-batches to ``count``: halve the micro-batches with the most rows, then add fillers.

    Splitting costs no time: other processes compute ``count`` micro-batches anyway, and a half is never wider than the
    whole.
    """
    result = [list(batch) for batch in batches]
    while len(result) < count:
        largest = max(range(len(result)), key=lambda at: len(result[at]), default=None)
        if largest is None or len(result[largest]) < 2:
            break
        batch = result[largest]
        half = len(batch) // 2
        result[largest : largest + 1] = [batch[:half], batch[half:]]
    return result + [[] for _ in range(count - len(result))]


def by_prefix(rows: Sequence[Ids]) -> list[int]:
    """Return the positions of the rows, sorted so that rows with the longest shared prefixes are neighbours."""
    return sorted(range(len(rows)), key=rows.__getitem__)


def shared_lengths(rows: Sequence[Ids]) -> list[int]:
    """Return the number of tokens that each row shares with the row before it, whose next tokens are also the same.

    Args:
        rows: Token ids of each row, in the order of ``by_prefix``.
    """
    arrays = [np.asarray(row) for row in rows]
    found = [0] * len(rows)
    for place, (before, row) in enumerate(pairwise(arrays), start=1):
        length = min(len(before), len(row))
        differ = np.flatnonzero(before[:length] != row[:length])
        found[place] = max(0, int(differ[0] if len(differ) else length) - 1)
    return found


def tree_tokens(rows: Sequence[Ids]) -> int:
    """Return the number of tokens of the packed sequence of rows, in any order."""
    ordered = [rows[position] for position in by_prefix(rows)]
    return sum(map(len, ordered)) - sum(shared_lengths(ordered))


def divide(rows: Sequence[Ids], budget: int, size: int) -> tuple[list[list[int]], list[int]]:
    """Divide rows into prefix trees, and rows for which separate rows cost less.

    The costs are estimates from the numbers of tokens and of pairs in attention.

    Args:
        rows: Token ids of each row.
        budget: Largest number of tokens of the packed sequence of a tree with several rows.
        size: Width of the model's layers.

    Returns:
        The positions of the rows of each tree, in the order of ``by_prefix``, and those of the other rows.
    """
    trees: list[list[int]] = []
    others: list[int] = []
    for batch in _pack_trees(rows, budget):
        starts = shared_lengths([rows[at] for at in batch])
        lengths = [len(rows[at]) for at in batch]
        own = sum(lengths) - sum(starts)
        pairs = sum((stop**2 - start**2) / 2 for start, stop in zip(starts, lengths, strict=True))
        shapes = [(len(part), max(lengths[at] for at in part)) for part in pack(lengths, budget)]
        padded = sum(count * width for count, width in shapes)
        padded_pairs = sum(count * width**2 / 2 for count, width in shapes)
        cheaper = _OVERHEAD * (own + _PAIR * pairs / size) < padded + _PAIR * padded_pairs / size
        if any(starts) and cheaper:
            trees.append(batch)
        else:
            others += batch
    return trees, others


def _pack_trees(rows: Sequence[Ids], budget: int) -> list[list[int]]:
    """Divide rows, sorted by their tokens, into trees; a new tree begins where the least is shared."""
    order = by_prefix(rows)
    shared = shared_lengths([rows[at] for at in order])
    lengths = [len(rows[at]) for at in order]
    trees: list[list[int]] = []
    start = 0
    while start < len(order):
        stop, own, every = start + 1, lengths[start], lengths[start]
        while stop < len(order):
            own, every = own + lengths[stop] - shared[stop], every + lengths[stop]
            if own > budget or every > _ROWS * budget:
                stop = min(range(stop, start, -1), key=shared.__getitem__)
                break
            stop += 1
        trees.append(order[start:stop])
        start = stop
    return trees
