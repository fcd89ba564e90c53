"""Compute the loss and gradients of one optimizer step in the simplest form, as a reference for other backends.

Each row is computed on its own, without padding, with the logits of every token and the whole autograd graph in memory.
Covered: the loss of a list of rows, and its gradients. Not covered: optimizations (micro-batches, several processes,
mixed precision, recomputation), and playing episodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from rstar2_env.core.row import Row

from ...losses.base import (
    ENVIRONMENT,
    Aggregation,
    Correction,
    Prepares,
    Term,
    is_corrected,
    needs_of,
    prepared,
)
from ...losses.batch_tokens import BatchTokens, with_columns
from ...losses.contrast import relations
from ...losses.tokens import Tokens
from ...ranks import ONE

Gradients = dict[str, Tensor]
"""The gradient of each trained parameter, by its name in the model."""


def distributions(model: PreTrainedModel, row: Row, temperature: float = 1.0) -> Tensor:
    """Return the log-probabilities of all tokens of the vocabulary at each completion token.

    Args:
        model: A causal language model.
        row: The row; its prompt holds at least one token.
        temperature: Divisor of the logits: the temperature at which the row was sampled.

    Returns:
        (completion tokens, vocabulary).
    """
    ids = torch.tensor([[*row.prompt_ids, *row.completion_ids]], device=model.device)
    logits: Tensor = model(input_ids=ids).logits[0] / temperature
    # The logits at one position predict the token at the next position.
    return logits[len(row.prompt_ids) - 1 : -1].log_softmax(-1)


def embedding(model: PreTrainedModel, row: Row) -> Tensor:
    """Return the mean of the last layer's output over the policy's tokens, (hidden,); zeros if there are none."""
    ids = torch.tensor([[*row.prompt_ids, *row.completion_ids]], device=model.device)
    hidden: Tensor = model(input_ids=ids, output_hidden_states=True).hidden_states[-1][0, len(row.prompt_ids) :]
    chosen = hidden[torch.tensor(row.mask, dtype=torch.bool, device=model.device)]
    return chosen.sum(0) / max(len(chosen), 1)


def log_probs(model: PreTrainedModel, row: Row, temperature: float = 1.0) -> Tensor:
    """Return the log-probability of each completion token, (completion tokens,)."""
    return _chosen(distributions(model, row, temperature), row)


def gradients(
    model: PreTrainedModel,
    rows: Sequence[Row],
    terms: Sequence[Term],
    aggregation: Aggregation,
    correction: Correction,
    *,
    temperature: float = 1.0,
    old: Sequence[Tensor] | None = None,
    old_means: Sequence[Tensor] | None = None,
    reference: Sequence[Tensor] | None = None,
    rng: np.random.Generator | None = None,
    embeddings: Sequence[Tensor] | None = None,
) -> tuple[float, Gradients]:
    """Compute the loss of an optimizer batch, and its gradients.

    Args:
        model: The policy.
        rows: All rows of the batch.
        terms: The terms of the loss.
        aggregation: Defines how token losses are averaged.
        correction: Computes a weight for each token, by which policy-gradient terms are multiplied.
        temperature: Temperature at which the rows were sampled.
        old: Log-probabilities of each row, (completion tokens,), under the weights that sampled the row; ``None`` uses
            the log-probabilities under the current weights.
        old_means: Mean log-probability over the vocabulary at each completion token, under the weights of ``old``;
            ``None`` means the current weights.
        reference: Log-probabilities of each row under the reference model; ``None`` if no term needs them.
        rng: Random generator for terms; each optimizer step of a run has its own. ``None`` uses the seed 0.
        embeddings: Embedding of each row under the weights that sampled it, (hidden,); ``None`` if no term compares
            rows.

    Returns:
        The loss, and the gradient of each parameter that has one.
    """
    model.zero_grad()
    groups = np.array([row.group for row in rows], dtype=np.int64)
    weights, environment_weights = (
        aggregation(np.array(lengths, dtype=np.int64), groups, ONE)
        for lengths in ([row.policy_tokens for row in rows], [row.environment_tokens for row in rows])
    )
    needs = needs_of(terms, correction)
    total = 0.0
    if any(isinstance(term, Prepares) for term in terms):
        with torch.no_grad():
            logp = [log_probs(model, row, temperature) for row in rows]
        given = [[values.double().cpu().numpy() for values in each] for each in (logp, logp if old is None else old)]
        columns = prepared(terms, BatchTokens.of(rows, *given), ONE, rng or np.random.default_rng(0))
        rows = with_columns(rows, columns)
    for number, row in enumerate(rows):
        every = distributions(model, row, temperature)
        tokens = _tokens(
            row,
            every,
            old=None if old is None else old[number],
            old_mean=None if old_means is None else old_means[number],
            reference=None if reference is None else reference[number],
        )
        if "embedding" in needs and embeddings is not None:
            others, related = relations(rows, number)
            tokens.embedding = embedding(model, row)[None]
            tokens.peers = torch.stack([embeddings[at] for at in others] or [tokens.embedding[0] * 0])[None].detach()
            tokens.relations = torch.tensor([related or [0]])
        corrected = correction(tokens)
        loss = every.sum() * 0
        for term in terms:
            if ENVIRONMENT in term.needs:
                loss = loss + environment_weights[number] * term(tokens)[tokens.environment].sum()
            else:
                losses = term(tokens) * corrected if is_corrected(term) else term(tokens)
                loss = loss + weights[number] * losses[tokens.mask].sum()
        loss.backward()
        total += loss.item()
    return total, {name: trained.grad for name, trained in model.named_parameters() if trained.grad is not None}


def _tokens(
    row: Row, every: Tensor, *, old: Tensor | None, old_mean: Tensor | None, reference: Tensor | None
) -> Tokens:
    """Return the inputs of the loss terms for one row, from ``every``, the result of ``distributions``.

    Each returned tensor is (1, completion tokens).
    """
    logp = _chosen(every, row)

    def numbers(values: object) -> Tensor:
        array = np.broadcast_to(np.asarray(values, dtype=np.float64), (len(row.completion_ids),))
        return torch.tensor(array, dtype=logp.dtype, device=logp.device)[None]

    return Tokens(
        logp=logp[None],
        old=(logp if old is None else old).detach()[None],
        sampled=numbers(row.logprobs),
        advantage=numbers(row.advantage),
        mask=numbers(row.mask).bool(),
        turn=numbers(row.turn_of()).long(),
        depth=numbers(row.depth_of()).long(),
        entropy=-(every.exp() * every).sum(-1)[None],
        reference=None if reference is None else reference.detach()[None],
        teacher=numbers(row.columns["teacher"]) if "teacher" in row.columns else None,
        mean_logp=every.mean(-1).detach()[None],
        old_mean_logp=(every.mean(-1) if old_mean is None else old_mean).detach()[None],
        answered=numbers(row.answered_of()).long(),
        columns={name: numbers(values) for name, values in row.columns.items()},
    )


def _chosen(every: Tensor, row: Row) -> Tensor:
    """Return the entry at each completion token's id from a tensor (completion tokens, vocabulary)."""
    ids = torch.tensor(row.completion_ids, device=every.device)
    return every.gather(1, ids[:, None])[:, 0]
