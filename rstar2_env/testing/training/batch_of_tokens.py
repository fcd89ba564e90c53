"""``BatchTokens`` for checks of losses that prepare something of the whole optimizer batch. It needs no torch."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

LENGTHS = (9, 6, 1, 0, 4, 7)
"""Policy tokens of the rows; one has none."""
GROUPS = (3, 3, 5, 5, 8, 8)


def of_tokens(tokens: Any) -> Any:
    """``BatchTokens`` of a micro-batch, whose rows are taken for those of one group."""
    mask = tokens.mask.numpy()
    line = {name: getattr(tokens, name).detach().numpy()[mask] for name in ("logp", "old", "sampled", "advantage")}
    row = np.repeat(np.arange(len(mask)), mask.sum(1))
    return _made(**line, row=row, groups=np.zeros(len(mask), dtype=np.int64))


def drawn(seed: int, *, old: bool, groups: Sequence[int] = GROUPS) -> Any:
    """``BatchTokens`` of several groups, of which those in ``groups`` are taken.

    Args:
        seed: Draws all numbers.
        old: Whether the numbers of ``old`` are given; without, they are NaN, as nobody computes them then.
        groups: The groups to take, in the order of their rows.
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
    """The columns of several processes as those of one."""
    return {name: np.concatenate([shard[name] for shard in shards]) for name in shards[0]}


def _made(**columns: Any) -> Any:
    tokens = importlib.import_module("rstar2_env.trainers.losses.batch_tokens")
    groups = np.asarray(columns.pop("groups"), dtype=np.int64)
    return tokens.BatchTokens(**columns, groups=groups)
