"""Micro-batches: the tensors of a few rows that one forward pass computes.

Each micro-batch is as wide as its own longest row. Every process computes the same number of micro-batches, since
backward passes are collective: with sharding, all of them are; with plain data parallelism, the last one of each step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rstar2_env.core.row import FloatArray, Row

from ....losses.contrast import relations
from .prefix_tree import IGNORED, PrefixTree

FILLER_WIDTH = 2
"""Width of a filler (a micro-batch without rows) in tokens: an input token, and a predicted token without a label."""


@dataclass(slots=True)
class MicroBatch:
    """Tensors of a few rows, prompt and completion joined and padded on the right.

    A filler is a micro-batch without rows. It keeps the number of micro-batches equal on all processes.

    With B rows padded to W tokens, ``ids``, ``labels`` and ``attention`` are (B, W); the other tensors hold one entry
    for each predicted token, (B, W - 1).

    Attributes:
        rows: Positions of the rows in the optimizer batch.
        ids: Token ids.
        labels: The ids of the tokens whose log-probability is computed, ``IGNORED`` elsewhere: the policy's tokens, and
            the environment's tokens if a term needs them.
        attention: 1 on tokens, 0 on padding.
        mask: True on the policy's tokens.
        weight: Weight of each policy token in the loss, 0 elsewhere.
        advantage: Advantage of each token.
        sampled: The engine's log-probability of each token.
        old: Log-probability before the first update on the rollout; ``None`` if there was no update yet.
        reference: Log-probability under the reference model; ``None`` if no term needs it.
        turn: Index of the policy's turn that the token is in, from 0; -1 on other tokens.
        depth: Number of tool calls in the turns before each policy token; -1 on other tokens.
        columns: Further values of the rows, by name; 0 for rows without a value.
        old_mean_logp: Mean over the vocabulary of the log-probabilities before the first update on the rollout;
            ``None`` if there was no update yet or no term needs it.
        answered: For each environment token, the number of calls that its message answers; -1 on other tokens.
            ``None`` if no term needs it.
        environment_weight: Weight of each environment token in the loss, 0 elsewhere; ``None`` if no term needs it.
        peers: Embeddings of the other rows of each row's group, (B, K, H); ``None`` if no term needs them.
        relations: Relation of each peer to the row, (B, K); see ``contrast.relations``.
        share: Share of the optimizer batch's tokens that are in this micro-batch; it weights the load-balancing loss of
            a mixture of experts, and is 0 for other models.
        tree: The packed sequence that the model computes instead of ``ids``; ``None`` for separate rows.
    """

    rows: list[int]
    ids: Tensor
    labels: Tensor
    attention: Tensor
    mask: Tensor
    weight: Tensor
    advantage: Tensor
    sampled: Tensor
    old: Tensor | None
    reference: Tensor | None
    turn: Tensor
    depth: Tensor
    columns: Mapping[str, Tensor]
    old_mean_logp: Tensor | None = None
    answered: Tensor | None = None
    environment_weight: Tensor | None = None
    peers: Tensor | None = None
    relations: Tensor | None = None
    share: float = 0.0
    tree: PrefixTree | None = None

    @property
    def computed(self) -> int:
        """Number of tokens that the model computes, padding included."""
        return (self.ids if self.tree is None else self.tree.ids).numel()


def lay_out(
    batch: Sequence[int],
    rows: Sequence[Row],
    *,
    weights: FloatArray | None = None,
    old: Sequence[FloatArray | None] | None = None,
    reference: Sequence[FloatArray | None] | None = None,
    old_mean_logp: Sequence[FloatArray | None] | None = None,
    environment_weights: FloatArray | None = None,
    embeddings: Sequence[FloatArray | None] | None = None,
    as_tree: bool = False,
    pad: int = 0,
    device: torch.device | str = "cpu",
) -> MicroBatch:
    """Make the tensors of one micro-batch.

    Args:
        batch: Positions in ``rows``; an empty batch makes a filler.
        rows: The rows of the optimizer batch.
        weights: Weight of each row's policy tokens in the loss, (rows,); ``None`` means 0.
        old: Log-probabilities of each row's completion before the first update on the rollout, (completion tokens,);
            ``None`` if they are not computed yet.
        reference: Like ``old``, but under the reference model.
        old_mean_logp: Like ``old``, but the mean log-probability of all tokens of the vocabulary at each position.
        environment_weights: Weight of each row's environment tokens in the loss, (rows,); ``None`` leaves these tokens
            out.
        embeddings: Embedding of each row, (H,); ``None`` if no term compares the rows of a group.
        as_tree: Whether the model computes shared prefixes once; the batch must then be in the order of ``by_prefix``.
        pad: Token id of the padding.
        device: Device of the tensors.

    Raises:
        ValueError: A row has no prompt, so nothing predicts its first token.
    """
    chosen = [rows[position] for position in batch]
    width = max((row.tokens for row in chosen), default=FILLER_WIDTH)
    width = max(width, FILLER_WIDTH)
    count = max(1, len(chosen))
    ids = np.full((count, width), pad, dtype=np.int64)
    attention = np.zeros((count, width), dtype=np.int64)
    for place, row in enumerate(chosen):
        if not row.prompt_ids:
            raise ValueError(
                "A row to train on must have a prompt of at least one token, from which the first token of "
                "the completion is predicted."
            )
        ids[place, : row.tokens] = row.ids
        attention[place, : row.tokens] = 1
    if not chosen:
        attention[:] = 1

    def spread(values: Callable[[int, Row], Any], fill: float = 0.0, dtype: Any = np.float32) -> Tensor:
        """Write values at the positions that predict the completion tokens, (B, W - 1), and ``fill`` elsewhere.

        ``values`` returns one value for a row, or one for each completion token, given the row's position and the row.
        """
        array = np.full((count, width - 1), fill, dtype=dtype)
        for place, (position, row) in enumerate(zip(batch, chosen, strict=True)):
            start = len(row.prompt_ids) - 1
            array[place, start : start + len(row.completion_ids)] = values(position, row)
        return torch.from_numpy(array).to(device)

    def stored(values: Sequence[FloatArray | None] | None) -> Tensor | None:
        if values is None or any(values[position] is None for position in batch):
            return None
        return spread(lambda position, row: values[position])

    mask = spread(lambda position, row: row.mask, dtype=np.bool_)
    answered = environment_weight = None
    scored = mask
    if environment_weights is not None:
        answered = spread(lambda position, row: row.answered_of(), fill=-1, dtype=np.int64)
        environment_weight = spread(lambda position, row: environment_weights[position]) * (answered >= 0)
        scored = mask | (answered >= 0)
    labels = np.full((count, width), IGNORED, dtype=np.int64)
    labels[:, 1:] = np.where(scored.cpu().numpy(), ids[:, 1:], IGNORED)
    peers, related = (None, None) if embeddings is None else _peers(batch, rows, embeddings, device)
    names = sorted({name for row in chosen for name in row.columns})
    return MicroBatch(
        rows=list(batch),
        ids=torch.from_numpy(ids).to(device),
        labels=torch.from_numpy(labels).to(device),
        attention=torch.from_numpy(attention).to(device),
        mask=mask,
        weight=spread(lambda position, row: 0.0 if weights is None else weights[position]) * mask,
        advantage=spread(lambda position, row: row.advantage),
        sampled=spread(lambda position, row: row.logprobs),
        old=stored(old),
        reference=stored(reference),
        turn=spread(lambda position, row: row.turn_of(), fill=-1, dtype=np.int64),
        depth=spread(lambda position, row: row.depth_of(), fill=-1, dtype=np.int64),
        columns={name: spread(_column(name)) for name in names},
        old_mean_logp=stored(old_mean_logp),
        answered=answered,
        environment_weight=environment_weight,
        peers=peers,
        relations=related,
        tree=PrefixTree.of([row.ids for row in chosen], labels, device) if as_tree else None,
    )


def _peers(
    batch: Sequence[int], rows: Sequence[Row], embeddings: Sequence[FloatArray | None], device: torch.device | str
) -> tuple[Tensor, Tensor]:
    """Return, for each row, the embeddings of the other rows of its group, (B, K, H), and their relations, (B, K).

    A relation is 1 for a positive of the row, -1 for a negative, else 0; see ``contrast.relations``.
    """
    found = [relations(rows, position) for position in batch]
    most = max((len(others) for others, _ in found), default=0)
    size = max((len(one) for one in embeddings if one is not None), default=1)
    peers = np.zeros((max(1, len(batch)), most, size), dtype=np.float32)
    related = np.zeros((max(1, len(batch)), most), dtype=np.int64)
    for place, (others, what) in enumerate(found):
        for at, other in enumerate(others):
            peers[place, at] = embeddings[other]
        related[place, : len(what)] = what
    return torch.from_numpy(peers).to(device), torch.from_numpy(related).to(device)


def _column(name: str) -> Callable[[int, Row], Any]:
    return lambda position, row: row.columns.get(name, 0.0)


def completion_values(values: Tensor, batch: MicroBatch, rows: Sequence[Row]) -> list[FloatArray]:
    """Extract the values of each row's completion from a tensor (B, W - 1); the inverse of ``lay_out``."""
    array = values.detach().double().cpu().numpy()
    found = []
    for place, position in enumerate(batch.rows):
        start = len(rows[position].prompt_ids) - 1
        found.append(array[place, start : start + len(rows[position].completion_ids)].copy())
    return found


def row_embeddings(values: Tensor, batch: MicroBatch) -> list[FloatArray]:
    """Split (B, H) into an embedding for each row; the list is empty for a filler, a micro-batch without rows."""
    return list(values.detach().double().cpu().numpy()[: len(batch.rows)])
