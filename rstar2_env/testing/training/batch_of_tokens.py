"""Makes ``BatchTokens``, without torch, for checks of losses that precompute columns from the whole optimizer batch."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

LENGTHS = (9, 6, 1, 0, 4, 7)
"""Number of policy tokens in each row; one row has none."""
GROUPS = (3, 3, 5, 5, 8, 8)


def of_tokens(tokens: Any) -> Any:
    """Convert a micro-batch (``Tokens``) to ``BatchTokens``, with all rows in one group."""
    mask = tokens.mask.numpy()
    line = {name: getattr(tokens, name).detach().numpy()[mask] for name in ("logp", "old", "sampled", "advantage")}
    row = np.repeat(np.arange(len(mask)), mask.sum(1))
    return _made(**line, row=row, groups=np.zeros(len(mask), dtype=np.int64))


def drawn(seed: int, *, old: bool, groups: Sequence[int] = GROUPS) -> Any:
    """Return ``BatchTokens`` with random values, for the rows of the selected groups.

    Args:
        seed: Seed of all random values.
        old: Whether ``old`` (log-probabilities before the update) has values; otherwise it is all NaN, as in a trainer
            whose loss does not need it.
        groups: Numbers of the groups to include, a subset of ``GROUPS``.
    """
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
    logp = -rng.random(len(row)) - 0.1
    columns = {
        "logp": logp,
        "old": logp + rng.normal(0, 0.2, len(row)) if old else np.full(len(row), np.nan),
        "sampled": logp + rng.normal(0, 0.2, len(row)),
        "advantage": rng.normal(0, 1, len(LENGTHS))[row],
    }
    own = [at for at, group in enumerate(GROUPS) if group in groups]
    here = np.isin(row, own)
    renumbered = np.searchsorted(own, row[here]) if own else row[here]
    return _made(
        **{name: values[here] for name, values in columns.items()}, row=renumbered, groups=np.take(GROUPS, own)
    )


def in_line(shards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Join the columns of several processes (one dict of columns each), as if one process had all rows."""
    return {name: np.concatenate([shard[name] for shard in shards]) for name in shards[0]}


def _made(**columns: Any) -> Any:
    tokens = importlib.import_module("rstar2_env.trainers.losses.batch_tokens")
    groups = np.asarray(columns.pop("groups"), dtype=np.int64)
    return tokens.BatchTokens(**columns, groups=groups)
