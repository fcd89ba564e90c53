"""``BatchTokens``: the policy's tokens of a whole optimizer batch, for terms that compare tokens across the batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from rstar2_env.core.row import FloatArray, IntArray, Row


@dataclass(frozen=True, slots=True)
class BatchTokens:
    """The policy's tokens in the rows of this process, row after row; tensors are (tokens,), without a gradient.

    Attributes:
        logp: Log-probability of each token under the weights before this optimizer step.
        old: Log-probability of each token under the trainer's weights when the rows were sampled.
        sampled: The engine's log-probability of each token when it was sampled.
        advantage: Advantage of each token.
        row: Index of the row that each token belongs to, from 0 (int64).
        groups: Group number of each row, unique over all processes, (rows,). All rows of a group are on one process.
    """

    logp: FloatArray
    old: FloatArray
    sampled: FloatArray
    advantage: FloatArray
    row: IntArray
    groups: IntArray

    @classmethod
    def of(cls, rows: Sequence[Row], logp: Sequence[FloatArray], old: Sequence[FloatArray]) -> Self:
        """Concatenate the policy's tokens of the rows of an optimizer batch.

        Args:
            rows: The rows.
            logp: Log-probabilities of each row's completion under the current weights, (completion tokens,).
            old: Log-probabilities of each row's completion before the first update on the rows.
        """
        masks = [np.asarray(row.mask, dtype=bool) for row in rows]

        def line(values: Sequence[object]) -> FloatArray:
            parts = [
                np.broadcast_to(np.asarray(own, dtype=np.float64), mask.shape)[mask]
                for own, mask in zip(values, masks, strict=True)
            ]
            return np.concatenate([np.zeros(0), *parts])

        return cls(
            logp=line(logp),
            old=line(old),
            sampled=line([row.logprobs for row in rows]),
            advantage=line([row.advantage for row in rows]),
            row=np.repeat(np.arange(len(rows), dtype=np.int64), [int(mask.sum()) for mask in masks]),
            groups=np.array([row.group for row in rows], dtype=np.int64),
        )

    def lengths(self) -> IntArray:
        """Number of policy tokens of each row, (rows,)."""
        return np.bincount(self.row, minlength=len(self.groups)).astype(np.int64)

    def keys(self) -> IntArray:
        """Return keys that identify each token independently of the division over processes, (tokens, 3).

        Returns:
            For each token: its group number, the index of its row in the group, and its index in the row.
        """
        member = np.array([number for _, number in self._rows()], dtype=np.int64)[self.row]
        lengths = self.lengths()
        token = np.arange(len(self.row)) - np.repeat(self._first(), lengths)
        return np.stack([self.groups[self.row], member, token], axis=1)

    def marked(self, keys: IntArray) -> FloatArray:
        """Return 1 for each token of this process whose key is in ``keys``, else 0, (tokens,).

        Args:
            keys: Keys of tokens of any process, (keys, 3).
        """
        rows = {name: row for row, name in enumerate(self._rows())}
        first = self._first()
        found = np.zeros(len(self.row))
        for group, member, token in keys.tolist():
            row = rows.get((group, member))
            if row is not None:
                found[first[row] + token] = 1.0
        return found

    def _rows(self) -> list[tuple[int, int]]:
        """Return, for each row, its group number and its index in that group."""
        before: Counter[int] = Counter()
        found = []
        for group in self.groups.tolist():
            found.append((group, before[group]))
            before[group] += 1
        return found

    def _first(self) -> IntArray:
        """Return the position of each row's first token among all tokens of this process, (rows,)."""
        lengths = self.lengths()
        return np.cumsum(lengths) - lengths


def with_columns(rows: Sequence[Row], columns: Mapping[str, FloatArray]) -> list[Row]:
    """Return copies of rows with additional columns, which are 0 on the environment's tokens.

    Args:
        rows: The rows from which the ``BatchTokens`` were created.
        columns: Further columns, (tokens,) each.
    """
    found = []
    first = 0
    for row in rows:
        mask = np.asarray(row.mask, dtype=bool)
        after = first + int(mask.sum())
        own: dict[str, FloatArray] = {name: np.zeros(len(mask)) for name in columns}
        for name, values in columns.items():
            own[name][mask] = values[first:after]
        found.append(replace(row, columns={**row.columns, **own}))
        first = after
    return found
