"""Packing: divide rows into micro-batches, as separate padded rows or as prefix trees (``prefix_tree``).

The number of tokens of a micro-batch is limited by a budget. Rows are packed by their prefixes if a tree takes less
time than separate rows, and no more memory than the largest of the micro-batches that the tree replaces. All other rows
are packed by their lengths.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ....plan.row_cost import OVERHEAD, RowCost

Ids = list[int]


def pack(lengths: Sequence[int], budget: float, most_rows: float = math.inf) -> list[list[int]]:
    """Sort rows by length, longest first, and divide them into micro-batches of at most ``budget`` tokens.

    Args:
        lengths: Number of tokens of each row.
        budget: Maximum number of tokens in one micro-batch, padding included (number of rows times the length of the
            longest row); a longer row gets its own micro-batch.
        most_rows: Maximum number of rows in one micro-batch.

    Returns:
        The positions of the rows of each micro-batch.
    """
    batches: list[list[int]] = []
    width = 0
    for position in sorted(range(len(lengths)), key=lambda at: -lengths[at]):
        rows = len(batches[-1]) + 1 if batches else 0
        if 0 < rows <= most_rows and rows * width <= budget:
            batches[-1].append(position)
        else:
            batches.append([position])
            width = lengths[position]
    return batches


def even_out(batches: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """Raise the number of micro-batches to ``count``: halve the micro-batches with the most rows, then add empty ones.

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
    """Return, for each row, the length of its common prefix with the previous row, minus 1 (at least 0).

    The last equal token is not shared, since the two rows need different predictions from it.

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
    """Return the number of tokens of rows, given in any order, if each shared prefix is counted once."""
    ordered = [rows[position] for position in by_prefix(rows)]
    return sum(map(len, ordered)) - sum(shared_lengths(ordered))


def divide(rows: Sequence[Ids], budget: int, cost: RowCost) -> tuple[list[list[int]], list[int]]:
    """Group rows with shared prefixes into trees, and set aside the rows that are computed faster without a tree.

    A tree takes no more memory than the largest micro-batch of the same rows without a tree. Times and memory are
    estimates from the numbers of tokens and of query-key pairs.

    Args:
        rows: Token ids of each row.
        budget: Limit on the memory of a tree with several rows: the memory of this many tokens in separate rows.
        cost: Estimates time and memory from the sizes of the model.

    Returns:
        The positions of the rows of each tree, in the order of ``by_prefix``, and the positions of the other rows.
    """
    trees: list[list[int]] = []
    others: list[int] = []
    lengths = list(map(len, rows))
    largest = max((len(part) * max(lengths[at] for at in part) for part in pack(lengths, budget)), default=0)
    left = _pack_trees(rows, min(budget, largest), cost)
    while left:
        batch = left.pop(0)
        starts = shared_lengths([rows[at] for at in batch])
        if not any(starts):
            others += batch
            continue
        spans = [(start, len(rows[at])) for start, at in zip(starts, batch, strict=True)]
        stops = [stop for _, stop in spans]
        shapes = [(len(part), max(stops[at] for at in part)) for part in pack(stops, budget)]
        padded = cost.time(
            sum(count * width for count, width in shapes), sum(count * width**2 / 2 for count, width in shapes)
        )
        packed = cost.time(sum(stops) - sum(starts), sum((stop**2 - start**2) / 2 for start, stop in spans))
        if not OVERHEAD * packed < padded:
            others += batch
        elif cost.memory(spans) <= max(count * width for count, width in shapes):
            trees.append(batch)
        else:
            cut = min(range(len(batch) - 1, 0, -1), key=starts.__getitem__)
            left[:0] = [batch[:cut], batch[cut:]]
    return trees, others


def _pack_trees(rows: Sequence[Ids], budget: int, cost: RowCost) -> list[list[int]]:
    """Sort rows by their token ids, and divide them into trees whose tokens and memory are within ``budget``.

    A full tree is cut before the row that shares the fewest tokens with the row before it; the next tree begins there.
    """
    order = by_prefix(rows)
    shared = shared_lengths([rows[at] for at in order])
    lengths = [len(rows[at]) for at in order]
    trees: list[list[int]] = []
    start = 0
    while start < len(order):
        stop, own = start + 1, lengths[start]
        while stop < len(order) and own + lengths[stop] - shared[stop] <= budget:
            own += lengths[stop] - shared[stop]
            stop += 1

        spans = [(0, lengths[start]), *zip(shared[start + 1 : stop], lengths[start + 1 : stop], strict=True)]
        if cost.memory(spans) > budget:
            fitting, too_many = 1, len(spans)
            while too_many - fitting > 1:
                count = (fitting + too_many) // 2
                fitting, too_many = (count, too_many) if cost.memory(spans[:count]) <= budget else (fitting, count)
            stop = start + fitting
        if stop < len(order):
            stop = min(range(stop, start, -1), key=shared.__getitem__)
        trees.append(order[start:stop])
        start = stop
    return trees
