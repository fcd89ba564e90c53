"""Samples each row's next token from the model's logits, with one random number per row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rstar2_env.rollout.engine import SamplingParams
from rstar2_env.rollout.engines.request import Request


class TokenSampler:
    """Samples for a fixed list of rows.

    Args:
        params: Sampling parameters of each row.
        device: Device of the logits.

    Attributes:
        best: After ``draw``, the log-probabilities of the most likely tokens, by row, for rows that request them at
            their current position.
    """

    def __init__(self, params: Sequence[SamplingParams], device: torch.device) -> None:
        kinds = {(p.temperature, p.top_k, p.top_p) for p in params}
        self._temperature: Tensor | None = None
        self._divisor: Tensor | float | None = None
        self._greedy = all(kind[0] == 0 for kind in kinds)
        if len(kinds) == 1 and not self._greedy:
            if params[0].temperature != 1:
                # In float32, as for rows with different temperatures.
                self._divisor = float(np.float32(params[0].temperature))
        elif not self._greedy:
            self._temperature = torch.tensor([p.temperature for p in params], dtype=torch.float32, device=device)
            self._divisor = torch.where(self._temperature > 0, self._temperature, 1.0)[:, None]
        self._top_k: Tensor | None = None
        if any(top_k > 0 or top_p < 1 for _, top_k, top_p in kinds):
            self._top_k = torch.tensor([p.top_k or 1 << 62 for p in params], device=device)[:, None]
            self._top_p = torch.tensor([p.top_p for p in params], dtype=torch.float32, device=device)[:, None]
        self.best: dict[int, list[float]] = {}
        self._wanted = [p.candidates for p in params]
        self._measured = [p.measured_tokens for p in params]

    def draw(
        self, logits: Tensor, uniform: Sequence[float], places: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Draw one token for each row.

        Args:
            logits: (rows, vocabulary).
            uniform: A number in [0, 1) for each row.
            places: Number of tokens in each row's turn so far, needed for ``best``; ``None`` leaves ``best`` empty.

        Returns:
            The tokens, (rows,), and their log-probabilities under the logits divided by the temperature, (rows,).
        """
        logprobs = torch.log_softmax(logits if self._divisor is None else logits / self._divisor, dim=-1)
        self.best = self._best(logprobs, places or ())
        if self._greedy:
            tokens = logits.argmax(-1)
        else:
            numbers = torch.tensor(uniform, dtype=torch.float64, device=logits.device)
            tokens = _invert(self._filtered(logprobs).exp(), numbers)
            if self._temperature is not None:
                # The greedy choice is made before the division, whose rounding could make two logits equal.
                tokens = torch.where(self._temperature > 0, tokens, logits.argmax(-1))
        return tokens, logprobs.gather(1, tokens[:, None])[:, 0]

    def _best(self, logprobs: Tensor, places: Sequence[int]) -> dict[int, list[float]]:
        rows = [row for row, place in enumerate(places) if self._wanted[row] and place < self._measured[row]]
        if not rows:
            return {}
        most = min(logprobs.shape[1], max(self._wanted[row] for row in rows))
        found = logprobs[torch.tensor(rows, device=logprobs.device)].topk(most, dim=-1).values.tolist()
        return {row: values[: self._wanted[row]] for row, values in zip(rows, found, strict=True)}

    def _filtered(self, logprobs: Tensor) -> Tensor:
        """Set the log-probabilities of tokens that top-k and top-p exclude to minus infinity."""
        if self._top_k is None:
            return logprobs
        ordered, order = logprobs.sort(dim=-1, descending=True, stable=True)
        rank = torch.arange(logprobs.shape[1], device=logprobs.device)[None]
        before = ordered.exp().cumsum(-1) - ordered.exp()
        ordered = ordered.masked_fill((rank >= self._top_k) | ((before >= self._top_p) & (rank > 0)), -torch.inf)
        return torch.empty_like(logprobs).scatter_(1, order, ordered)


def draw_next(requests: Sequence[Request], logits: Tensor) -> Tensor:
    """Draw the next token of each request, and append it to the request.

    Args:
        requests: The requests.
        logits: (requests, vocabulary).

    Returns:
        The tokens, (requests,).
    """
    sampler = TokenSampler([request.params for request in requests], logits.device)
    places = [len(request.ids) for request in requests]
    draws = [request.draws.item(place) for request, place in zip(requests, places, strict=True)]
    tokens, logprobs = sampler.draw(logits, draws, places)
    drawn = zip(requests, tokens.tolist(), logprobs.tolist(), strict=True)
    for row, (request, token, logprob) in enumerate(drawn):
        request.draw(token, logprob, sampler.best.get(row))
    return tokens


def _invert(weights: Tensor, uniform: Tensor) -> Tensor:
    """Inverse-transform sampling for each row: (rows, vocabulary), (rows,) to (rows,)."""
    total = weights.double().cumsum(-1)
    index = torch.searchsorted(total, (uniform * total[:, -1])[:, None], right=True)[:, 0]
    # Rounding may select a token after the last one with a positive weight.
    last = weights.shape[1] - 1 - (weights.flip(-1) > 0).int().argmax(-1)
    return torch.minimum(index, last)
