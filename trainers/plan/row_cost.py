"""``RowCost``: estimates time and memory of training on rows, separately or as prefix trees.

A prefix tree computes each shared token only once (``trainers.backends.trl.loss.prefix_tree``). Its attention
copies the keys and values that each chunk of new tokens attends to, and needs masks. An estimate is the number of
tokens in separate rows that would take as much time or memory. Training uses the estimates to pack rows, and plans use
them to compute times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

Chunk = tuple[int, int, int]
"""Chunk of a row's new tokens in a tree: index of the row, first query, and position after the last query and key."""

_CHUNK = 256
"""Largest number of consecutive queries in one attention call; smaller chunks skip more of the causal mask."""
_CALL = 2**23
"""Largest number of query-key pairs in one attention call with several chunks; bounds the size of the call's mask."""
_WASTE = 1.15
"""Largest padded size of an attention call, relative to the total size of its chunks."""
_PAIR = 0.25
"""Cost of a query-key pair: ``_PAIR / hidden`` tokens. By the number of operations, ``_PAIR`` would be 1/6, but
attention is slower than matrix products with weights."""
OVERHEAD = 1.1
"""Cost of a tree, relative to separate rows with as many tokens and query-key pairs: a tree also copies keys and
queries."""
_MASK = 1.5
"""Memory of a query-key pair in the two masks (boolean, additive), relative to one number in the run's precision."""


@dataclass(frozen=True, slots=True)
class RowCost:
    """Expresses the time or memory of a training pass as the number of tokens that cost as much in separate rows.

    For the backward pass, a layer keeps for each token about 6 vectors of the model's width, 2 of the width of its
    queries, and 4 of the width of its feed-forward part; see ``training_memory``.

    Attributes:
        hidden: Width of the layers.
        queries: Width of all query heads together; ``None`` is ``hidden``.
        feed_forward: Width of the feed-forward part; ``None`` is 4 times ``hidden``.
        layers: Number of layers.
    """

    hidden: int
    queries: int | None = None
    feed_forward: int | None = None
    layers: int = 1

    @property
    def kept(self) -> int:
        """Number of values that a layer keeps for each token until the backward pass."""
        return 6 * self.hidden + 2 * (self.queries or self.hidden) + 4 * (self.feed_forward or 4 * self.hidden)

    def time(self, tokens: float, pairs: float) -> float:
        """Return how many tokens in separate rows take as long as ``tokens`` tokens with ``pairs`` query-key pairs."""
        return tokens + _PAIR * pairs / self.hidden

    def memory(self, spans: Sequence[tuple[int, int]]) -> float:
        """Return how many tokens in separate rows take as much memory as a prefix tree.

        The tree keeps its tokens, its masks, and copies of keys, values and queries.

        The masks are converted to tokens as if the model recomputed its layers. A token then needs the least memory, so
        the estimate for the masks is never too low.

        Args:
            spans: See ``attention_calls``.
        """
        own = sum(stop - start for start, stop in spans)
        copies = masked = 0
        for call in attention_calls(spans):
            width, longest = max(end - first for _, first, end in call), max(end for _, _, end in call)
            copies += len(call) * (2 * longest + width)
            firsts = {first for _, first, _ in call}
            masked += (len(call) if len(firsts) > 1 else 1) * width * longest if any(firsts) else 0
        queries = self.queries or self.hidden
        return own + copies * queries / self.kept + _MASK * masked / (self.hidden * self.layers + self.kept)


def attention_calls(spans: Sequence[tuple[int, int]]) -> list[list[Chunk]]:
    """Divide the attention of the packed sequence of a tree into calls with little padding.

    Args:
        spans: For each row, the index of its first new token (not shared with the previous row), and its number of
            tokens.

    Returns:
        The chunks of each call. Either every chunk of a call begins its row, or none does.
    """
    chunks: list[Chunk] = []
    for row, (start, stop) in enumerate(spans):
        bounds = np.linspace(start, stop, 1 + -(-(stop - start) // _CHUNK)).astype(int)
        chunks += [(row, int(first), int(end)) for first, end in pairwise(bounds)]
    calls: list[list[Chunk]] = []
    exact = width = 0
    for chunk in sorted(chunks, key=lambda chunk: (chunk[2], chunk[1])):
        _, first, end = chunk
        wider, size = max(width, end - first), (end - first) * end
        padded = (len(calls[-1]) + 1) * wider * end if calls else 0
        if calls and padded <= min(_CALL, _WASTE * (exact + size)) and (first > 0) == (calls[-1][0][1] > 0):
            calls[-1].append(chunk)
            exact, width = exact + size, wider
        else:
            calls.append([chunk])
            exact, width = size, end - first
    return calls
