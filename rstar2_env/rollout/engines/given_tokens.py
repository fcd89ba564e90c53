"""Log-probabilities of tokens that are given, not generated: one forward pass over several rows, without a gradient."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import torch
from torch import Tensor
from transformers import PreTrainedModel

_MOST_LOGITS = 1024
"""Positions whose logits are held at once over several rows; one row may have more."""
_PART = 256
"""Positions whose logits are normalised at once, in float32."""


@dataclass(eq=False)
class ScoreRequest:
    """A prompt and the tokens after it.

    Attributes:
        prompt: At least one id.
        ids: At least one id.
        future: Receives the log-probability of each of ``ids``; cancelled by a caller that no longer needs it.
    """

    prompt: list[int]
    ids: list[int]
    future: Future[list[float]] = field(default_factory=Future)


def fitting(waiting: Sequence[ScoreRequest], most_tokens: int) -> int:
    """How many of the first ones fit into one pass; at least one.

    Args:
        waiting: In the order in which they came.
        most_tokens: Largest number of tokens of a pass, padding included.
    """
    longest, kept = 0, 0
    for count, one in enumerate(waiting, start=1):
        longest, kept = max(longest, len(one.prompt) + len(one.ids)), max(kept, len(one.ids))
        if count > 1 and (count * longest > most_tokens or count * kept > _MOST_LOGITS):
            return count - 1
    return len(waiting)


@torch.no_grad()
def log_probs(model: PreTrainedModel, rows: Sequence[ScoreRequest]) -> list[list[float]]:
    """Log-probabilities at temperature 1 of each row's ids.

    Args:
        model: In evaluation mode.
        rows: Padded on the left, so that the ids end in the same place.
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
