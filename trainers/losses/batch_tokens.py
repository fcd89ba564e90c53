"""``BatchTokens``: the policy's tokens of a whole optimizer batch, for terms that compare a token with the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from rstar2_env.core.row import FloatArray, IntArray, Row


@dataclass(frozen=True, slots=True)
class BatchTokens:
    """The policy's tokens of this process's rows, row after row; arrays are (tokens,), without a gradient.

    Attributes:
        logp: Log-probability of each token under the weights that the step is about to train.
        old: The same under the weights that the optimizer had when the rows were sampled.
        sampled: The engine's log-probability of each token when it drew it.
        advantage: Advantage of each token.
        row: Number of the row that each token belongs to, from 0, long.
        groups: Number of the group that each row belongs to, unique over all processes, (rows,). Rows of a group are on
            one process.
    """

    logp: FloatArray
    old: FloatArray
    sampled: FloatArray
    advantage: FloatArray
    row: IntArray
    groups: IntArray

    @classmethod
    def of(cls, rows: Sequence[Row], logp: Sequence[FloatArray], old: Sequence[FloatArray]) -> Self:
        """Put the rows of an optimizer batch in line.

        Args:
            rows: The rows.
            logp: Log-probabilities of each row's completion under the weights as they are, (completion tokens,).
            old: The same before the first update on these rows.
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
            groups=np.array([row.episode.group for row in rows], dtype=np.int64),
        )

    def lengths(self) -> IntArray:
        """Policy tokens of each row, (rows,)."""
        return np.bincount(self.row, minlength=len(self.groups)).astype(np.int64)

    def keys(self) -> IntArray:
        """What names each token on any division of the groups over processes, (tokens, 3).

        Returns:
            Number of the group, of the row in its group, and of the token in its row.
        """
        member = np.array([number for _, number in self._rows()], dtype=np.int64)[self.row]
        lengths = self.lengths()
        token = np.arange(len(self.row)) - np.repeat(self._first(), lengths)
        return np.stack([self.groups[self.row], member, token], axis=1)

    def marked(self, keys: IntArray) -> FloatArray:
        """1 for each token of this process that is among the named ones, (tokens,).

        Args:
            keys: Keys of tokens of any process, (named, 3).
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
        """Group and number in the group of each row."""
        before: Counter[int] = Counter()
        found = []
        for group in self.groups.tolist():
            found.append((group, before[group]))
            before[group] += 1
        return found

    def _first(self) -> IntArray:
        """Position of each row's first token."""
        lengths = self.lengths()
        return np.cumsum(lengths) - lengths


def with_columns(rows: Sequence[Row], columns: Mapping[str, FloatArray]) -> list[Row]:
    """Copies of rows that have columns of ``BatchTokens`` beside their own, with 0 on the environment's tokens.

    Args:
        rows: The rows that the ``BatchTokens`` were made of.
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
