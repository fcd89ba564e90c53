"""``Objective``: the loss of a run on micro-batches, built from its terms, its correction and its aggregation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.row import FloatArray, Row

from ....losses.base import (
    ENVIRONMENT,
    Adapts,
    Aggregation,
    Correction,
    Figures,
    Measures,
    Prepares,
    Term,
    environment_losses,
    needs_of,
    prepared,
    token_losses,
)
from ....losses.batch_tokens import BatchTokens, with_columns
from ....losses.mismatch import mismatch
from ....losses.tokens import Tokens, bounded_exp
from ....ranks import Ranks
from .forward import TokenScores
from .micro_batches import MicroBatch


@dataclass
class Objective:
    """Computes the loss of a run on micro-batches.

    Attributes:
        terms: Terms of the loss, which are added up.
        aggregation: Returns, for each row, the weight of each of the row's tokens in the loss.
        correction: Returns the weights of tokens in policy-gradient terms.
    """

    terms: Sequence[Term]
    aggregation: Aggregation
    correction: Correction
    _figures: dict[str, list[tuple[Tensor, Tensor]]] = field(default_factory=dict, repr=False)

    @property
    def needs(self) -> frozenset[str]:
        """Names of the inputs that the loss needs in addition to the policy's log-probabilities."""
        return frozenset(needs_of(self.terms, self.correction))

    @property
    def only_policy_gradient(self) -> bool:
        """Whether all terms are policy gradients, so that rows with the advantage 0 need not be computed."""
        return all(term.policy_gradient for term in self.terms)

    def weights(self, rows: Sequence[Row], ranks: Ranks) -> NDArray[np.float64]:
        """Return the weight of each row's policy tokens in the loss of the optimizer batch; every process calls it."""
        return self._weights([row.policy_tokens for row in rows], rows, ranks)

    def environment_weights(self, rows: Sequence[Row], ranks: Ranks) -> NDArray[np.float64] | None:
        """Return the weight of each row's environment tokens in the loss; ``None`` if no term uses these tokens."""
        if ENVIRONMENT not in self.needs:
            return None
        return self._weights([row.environment_tokens for row in rows], rows, ranks)

    def _weights(self, lengths: Sequence[int], rows: Sequence[Row], ranks: Ranks) -> NDArray[np.float64]:
        groups = np.array([row.group for row in rows], dtype=np.int64)
        return self.aggregation(np.array(lengths, dtype=np.int64), groups, ranks)

    @property
    def prepares(self) -> bool:
        """Whether a term needs the whole optimizer batch at once; see ``prepare``."""
        return any(isinstance(term, Prepares) for term in self.terms)

    def prepare(
        self,
        rows: Sequence[Row],
        logp: Sequence[FloatArray],
        old: Sequence[FloatArray],
        ranks: Ranks,
        rng: np.random.Generator,
    ) -> list[Row]:
        """Return the rows with the columns that terms compute from the optimizer batch; every process calls it.

        Args:
            rows: The rows of this process; they are not changed.
            logp: Log-probabilities of each row's completion under the current weights, (completion tokens,).
            old: Log-probabilities of each row's completion before the first update on the rollout.
            ranks: The processes.
            rng: Random generator, in the same state on every process.
        """
        return with_columns(rows, prepared(self.terms, BatchTokens.of(rows, logp, old), ranks, rng))

    def loss(self, batch: MicroBatch, scores: TokenScores) -> Tensor:
        """Return a micro-batch's part of the loss; for one without rows, a 0 through which gradients still flow."""
        if not batch.rows:
            # A filler's loss is zero, but its backward pass takes part in the collective calls of all processes.
            return scores.logp.sum() * 0
        tokens = tokens_of(batch, scores, self.needs)
        corrected = self.correction(tokens)
        loss = (token_losses(tokens, self.terms, corrected) * batch.weight).sum()
        if batch.environment_weight is not None:
            loss = loss + (environment_losses(tokens, self.terms) * batch.environment_weight).sum()
        with torch.no_grad():
            self._measure(tokens, corrected)
        # The second term keeps the loss connected to the model if no token counts, as for rows without policy tokens.
        return loss + scores.logp.sum() * 0

    def take_figures(self) -> dict[str, tuple[float, float]]:
        """Return (sum, count) of each metric recorded since the last call, in one transfer from the device."""
        if not self._figures:
            return {}
        names = list(self._figures)
        totals = [torch.stack([torch.stack(pair).double() for pair in self._figures[name]]).sum(0) for name in names]
        self._figures = {}
        return {name: (total, count) for name, (total, count) in zip(names, torch.stack(totals).tolist(), strict=True)}

    def observe(self, figures: dict[str, tuple[float, float]]) -> None:
        """Pass the metrics of an optimizer step, summed over all processes, to the adaptive terms and correction."""
        for part in self._adapting():
            part.observe(figures)

    @property
    def adapts(self) -> bool:
        """Whether a term or the correction adapts from step to step; see ``Adapts``."""
        return bool(self._adapting())

    def state_dict(self) -> list[Any]:
        """Return the state of each term that adapts, and of the correction if it adapts."""
        return [part.state_dict() for part in self._adapting()]

    def load_state_dict(self, state: Sequence[Any]) -> None:
        """Restore a state that ``state_dict`` returned."""
        for part, own in zip(self._adapting(), state, strict=True):
            part.load_state_dict(own)

    def _adapting(self) -> list[Adapts]:
        return [part for part in (*self.terms, self.correction) if isinstance(part, Adapts)]

    def _measure(self, tokens: Tokens, weights: Tensor) -> None:
        figures: Figures = mismatch(tokens, weights)
        figures["policy/ratio"] = tokens.sum_and_count(bounded_exp(tokens.log_ratio))
        if tokens.entropy is not None:
            figures["policy/entropy"] = tokens.sum_and_count(tokens.entropy)
        for part in (*self.terms, self.correction):
            if isinstance(part, Measures):
                figures |= part.figures(tokens)
        for name, (total, number) in figures.items():
            self._figures.setdefault(name, []).append((total.detach(), number.detach()))


def tokens_of(batch: MicroBatch, scores: TokenScores, needs: frozenset[str]) -> Tokens:
    """Return the inputs of the loss parts for a micro-batch.

    Raises:
        ConfigurationError: A term needs a teacher, but the rows have no column ``teacher``.
    """
    if "teacher" in needs and "teacher" not in batch.columns:
        raise ConfigurationError(
            "A term of the loss needs the log-probabilities of a teacher model, but no row has the "
            "column 'teacher'. Set a teacher (model.teacher=FOLDER), or use a rollout part whose method "
            "`rows` adds the column."
        )
    logp = scores.logp
    mean_logp = scores.mean_logp if "mean_logp" in needs else None
    return Tokens(
        logp=logp,
        old=logp.detach() if batch.old is None else batch.old,
        sampled=batch.sampled,
        advantage=batch.advantage,
        mask=batch.mask,
        turn=batch.turn,
        depth=batch.depth,
        entropy=scores.entropy,
        reference=batch.reference if "reference" in needs else None,
        teacher=batch.columns["teacher"] if "teacher" in needs else None,
        mean_logp=mean_logp,
        old_mean_logp=mean_logp if batch.old_mean_logp is None else batch.old_mean_logp,
        answered=batch.answered,
        embedding=scores.embedding,
        peers=batch.peers,
        relations=batch.relations,
        columns=batch.columns,
    )
