"""What is kept of a rollout before it trains: passes under the weights that sampled it, without a gradient."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

from torch import Tensor

from rstar2_env.core.row import Row

from .forward import Autocast, Scores, score
from .micro_batches import MicroBatch
from .pending_rows import Pending

Found: TypeAlias = "Mapping[str, Tensor | None]"
Scorer: TypeAlias = Callable[[Any, MicroBatch], Found]
Look: TypeAlias = "Callable[[Sequence[Row], Scorer], list[tuple[MicroBatch, Found]]]"
"""Computes something of rows in micro-batches; all processes call together."""


def keep(pending: Pending, positions: Sequence[int], look: Look, scorer: Scorer) -> None:
    """Keep what a scorer finds of some rows of a rollout.

    Args:
        pending: The rows of the rollout.
        positions: Those to compute.
        look: Computes.
        scorer: Finds what is kept, by the name of its attribute.
    """
    rows = [pending.rows[position] for position in positions]
    for batch, found in look(rows, scorer):
        pending.keep(found, batch, rows, positions)


def keep_old(pending: Pending, needs: Collection[str], minibatches: int, look: Look, autocast: Autocast) -> None:
    """Keep what the updates of a rollout need of the weights that sampled it, before the first of them.

    What one update after the other finds itself is left out: the weights have not moved when the first is computed.

    Args:
        pending: The rows of the rollout.
        needs: Of the loss.
        minibatches: Updates of one pass over the rollout.
        look: Computes.
        autocast: Precision of the computation.
    """
    every = range(len(pending.rows))
    if "embedding" in needs:
        keep(
            pending,
            every,
            look,
            lambda model, batch: {"embeddings": score(model, batch, autocast, embed=True).embedding},
        )
    if minibatches > 1:
        # Without a later row of its own, a process takes part in the passes of the others.
        later = sorted(set(every) - set(pending.batches[0]))
        keep(pending, later, look, lambda model, batch: old_of(score(model, batch, autocast)))


def old_of(scores: Scores) -> Found:
    """What is kept of a pass under the weights that sampled."""
    return {"old": scores.logp, "old_mean_logp": scores.mean_logp}
