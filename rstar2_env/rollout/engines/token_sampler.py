"""Samples each row's next token from the model's logits, with one random number per row."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rstar2_env.rollout.engine import SamplingParams

BLOCK = 256
"""Number of token probabilities that are summed as one block when a token is sampled."""


def draw_tokens(logits: Tensor, params: Sequence[SamplingParams], uniform: Sequence[float]) -> tuple[Tensor, Tensor]:
    """Sample one token for each row.

    Args:
        logits: (rows, vocabulary).
        params: Sampling parameters of each row.
        uniform: One random number in [0, 1) for each row, which determines the token.

    Returns:
        The tokens, (rows,), and the log-probabilities of all tokens under the logits divided by the temperature, (rows,
        vocabulary).
    """
    device = logits.device
    divisors = [p.temperature or 1.0 for p in params]
    scaled = logits
    if any(divisor != 1 for divisor in divisors):
        scaled = logits / torch.tensor(divisors, dtype=torch.float32, device=device)[:, None]
    logprobs = torch.log_softmax(scaled, dim=-1)
    random = [p.temperature > 0 for p in params]
    if not any(random):
        return logits.argmax(-1), logprobs
    numbers = torch.tensor(uniform, dtype=torch.float64, device=device)
    tokens = _invert(_filtered(logprobs, params).exp(), numbers)
    if not all(random):
        # The greedy choice is made before the division, whose rounding could make two logits equal.
        tokens = torch.where(torch.tensor(random, device=device), tokens, logits.argmax(-1))
    return tokens, logprobs


def _filtered(logprobs: Tensor, params: Sequence[SamplingParams]) -> Tensor:
    """Set to minus infinity the log-probabilities of tokens that top-k and top-p exclude."""
    if all(p.top_k == 0 and p.top_p >= 1 for p in params):
        return logprobs
    device = logprobs.device
    top_k = torch.tensor([p.top_k or 1 << 62 for p in params], device=device)[:, None]
    top_p = torch.tensor([p.top_p for p in params], dtype=torch.float32, device=device)[:, None]
    ordered, order = logprobs.sort(dim=-1, descending=True, stable=True)
    rank = torch.arange(logprobs.shape[1], device=device)[None]
    before = ordered.exp().cumsum(-1) - ordered.exp()
    ordered = ordered.masked_fill((rank >= top_k) | ((before >= top_p) & (rank > 0)), -torch.inf)
    return torch.empty_like(logprobs).scatter_(1, order, ordered)


def _invert(weights: Tensor, uniform: Tensor) -> Tensor:
    """Sample a token for each row by inverse-transform sampling: weights (rows, vocabulary), tokens (rows,).

    The sums of blocks determine in which block a draw falls, and only that block is then summed token by token, so most
    entries of ``weights`` are read only once.
    """
    rows, words = weights.shape
    blocks = words // BLOCK
    if blocks < 2:
        return _invert_whole(weights, uniform)
    sums = weights[:, : blocks * BLOCK].view(rows, blocks, BLOCK).sum(-1, dtype=torch.float64)
    rest = weights[:, blocks * BLOCK :].sum(-1, dtype=torch.float64)
    ends = torch.cat((sums, rest[:, None]), dim=1).cumsum(-1)
    wanted = (uniform * ends[:, -1])[:, None]
    block = torch.searchsorted(ends, wanted, right=True).clamp(max=blocks)
    before = ends.gather(1, (block - 1).clamp(min=0)) * (block > 0)
    places = block * BLOCK + torch.arange(BLOCK, device=weights.device)
    own = weights.gather(1, places.clamp(max=words - 1)).double() * (places < words)
    within = torch.searchsorted(own.cumsum(-1) + before, wanted, right=True).clamp(max=BLOCK - 1)
    # The two sums of a block are rounded differently, so a draw at its end may miss the last token with a weight.
    if not (own.gather(1, within) > 0).all():
        return _invert_whole(weights, uniform)
    return (block * BLOCK + within)[:, 0]


def _invert_whole(weights: Tensor, uniform: Tensor) -> Tensor:
    """Sample a token for each row, as ``_invert`` does, but from the cumulative sum of all weights in the row."""
    total = weights.double().cumsum(-1)
    index = torch.searchsorted(total, (uniform * total[:, -1])[:, None], right=True)[:, 0]
    # Rounding may select a token after the last one with a positive weight.
    last = weights.shape[1] - 1 - (weights.flip(-1) > 0).int().argmax(-1)
    return torch.minimum(index, last)
