"""Computes the log-probabilities of given tokens in one forward pass over several padded rows, without a gradient."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import torch
from torch import Tensor
from transformers import PreTrainedModel

_MOST_LOGITS = 1024
"""Maximum number of positions, over all rows together, whose logits are held at once; a single row may have more."""
_PART = 256
"""Number of positions whose logits are normalized at once, in float32."""


@dataclass(eq=False)
class ScoreRequest:
    """A request to score tokens after a prompt.

    Attributes:
        prompt: Token ids before the scored ones; at least one.
        ids: Token ids to score; at least one.
        future: Receives the log-probability of each of ``ids``; a caller that no longer needs it cancels it.
    """

    prompt: list[int]
    ids: list[int]
    future: Future[list[float]] = field(default_factory=Future)


def fitting(waiting: Sequence[ScoreRequest], max_tokens: int) -> int:
    """Return how many of the waiting requests, in order, fit into one forward pass; at least 1 if any waits.

    Args:
        waiting: The requests in order of arrival.
        max_tokens: Maximum number of tokens in a pass, padding included.
    """
    longest, kept = 0, 0
    for count, one in enumerate(waiting, start=1):
        longest, kept = max(longest, len(one.prompt) + len(one.ids)), max(kept, len(one.ids))
        if count > 1 and (count * longest > max_tokens or count * kept > _MOST_LOGITS):
            return count - 1
    return len(waiting)


@torch.no_grad()
def log_probs(model: PreTrainedModel, rows: Sequence[ScoreRequest]) -> list[list[float]]:
    """Return the log-probability of each of a row's ids, given the ids before it, at temperature 1.

    Args:
        model: The model, in evaluation mode.
        rows: The requests; they are padded on the left, so that all ids end in the last column.
    """
    longest, kept = max(len(row.prompt) + len(row.ids) for row in rows), max(len(row.ids) for row in rows)
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for number, row in enumerate(rows):
        whole = [*row.prompt, *row.ids]
        ids[number, longest - len(whole) :] = torch.tensor(whole)
        mask[number, longest - len(whole) :] = 1
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    device = model.device
    logits = model(
        input_ids=ids.to(device),
        attention_mask=mask.to(device),
        position_ids=positions.to(device),
        use_cache=False,
        logits_to_keep=kept + 1,
    ).logits[:, :-1]
    found = _chosen(logits, ids[:, longest - kept :].to(device)).tolist()
    return [values[kept - len(row.ids) :] for values, row in zip(found, rows, strict=True)]


def _chosen(logits: Tensor, ids: Tensor) -> Tensor:
    """Log-probability of each id; logits (rows, positions, vocabulary), ids (rows, positions)."""
    parts = [
        part.float().log_softmax(-1).gather(-1, chosen[..., None])[..., 0]
        for part, chosen in zip(logits.split(_PART, dim=1), ids.split(_PART, dim=1), strict=True)
    ]
    return torch.cat(parts, dim=1)
