"""Forward passes over a rollout under the weights that sampled it, before the first update, without a gradient."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

from torch import Tensor

from rstar2_env.core.row import Row

from .forward import Autocast, TokenScores, score
from .micro_batches import MicroBatch
from .pending_rows import PendingRows

MicroBatchValues: TypeAlias = "Mapping[str, Tensor | None]"
MicroBatchScorer: TypeAlias = Callable[[Any, MicroBatch], MicroBatchValues]
ScoreRows: TypeAlias = "Callable[[Sequence[Row], MicroBatchScorer], list[tuple[MicroBatch, MicroBatchValues]]]"
"""Scores rows in micro-batches; all processes call it together."""


def store(pending: PendingRows, positions: Sequence[int], score_rows: ScoreRows, scorer: MicroBatchScorer) -> None:
    """Compute values of some rows of a rollout and store them.

    Args:
        pending: The rows of the rollout.
        positions: Positions of the rows to compute.
        score_rows: Runs the scorer over micro-batches of rows.
        scorer: Computes the values of a micro-batch, by a name of ``ROW_VALUES``.
    """
    rows = [pending.rows[position] for position in positions]
    for batch, computed in score_rows(rows, scorer):
        pending.store(computed, batch, rows, positions)


def store_old(
    pending: PendingRows, needs: Collection[str], minibatches: int, score_rows: ScoreRows, autocast: Autocast
) -> None:
    """Compute the values that later updates need under the weights that sampled the rollout; call it before any update.

    The rows of the first update are skipped: its own forward pass computes them before the weights change.

    Args:
        pending: The rows of the rollout.
        needs: Needs of the loss.
        minibatches: Updates of one pass over the rollout.
        score_rows: See ``store``.
        autocast: Precision of the computation.
    """
    every = range(len(pending.rows))

    def embed(model: Any, batch: MicroBatch) -> MicroBatchValues:
        return {"embeddings": score(model, batch, autocast, embed=True).embedding}

    if "embedding" in needs:
        store(pending, every, score_rows, embed)
    if minibatches > 1:
        # A process without such rows still takes part in the passes of the others.
        later = sorted(set(every) - set(pending.batches[0]))
        store(pending, later, score_rows, lambda model, batch: old_values(score(model, batch, autocast)))


def old_values(scores: TokenScores) -> MicroBatchValues:
    """The values to store from a forward pass under the weights that sampled the rows."""
    return {"old": scores.logp, "old_mean_logp": scores.mean_logp}
