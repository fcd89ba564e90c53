"""``BatchTokens`` of a few tokens that a test writes down, as they are on each of several processes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rstar2_env.trainers.losses.batch_tokens import BatchTokens
from rstar2_env.trainers.ranks import ONE


def batch_of(rows: Sequence[Mapping[str, Any]]) -> BatchTokens:
    """Rows of one process.

    Args:
        rows: Of each row ``logp``, a list; ``old`` and ``sampled``, lists, which are ``logp`` if not given;
            ``advantage``, one number or a list; ``group``.
    """
    lengths = [len(row["logp"]) for row in rows]

    def line(name: str, default: Any = None) -> Any:
        parts = [
            np.broadcast_to(np.asarray(row.get(name, row["logp"] if default is None else default), float), length)
            for row, length in zip(rows, lengths, strict=True)
        ]
        return np.concatenate([np.zeros(0), *parts])

    return BatchTokens(
        logp=line("logp"),
        old=line("old"),
        sampled=line("sampled"),
        advantage=line("advantage", 1.0),
        row=np.repeat(np.arange(len(rows)), lengths),
        groups=np.array([row.get("group", 0) for row in rows], dtype=np.int64),
    )


def column(term: Any, name: str, rows: Sequence[Mapping[str, Any]], seed: int = 0) -> list[float]:
    """A column that a term prepares of rows that are all on one process."""
    values: list[float] = term.prepare(batch_of(rows), ONE, np.random.default_rng(seed))[name].tolist()
    return values
