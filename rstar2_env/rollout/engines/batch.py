"""``Request``: one turn to generate; ``RunningBatch``: the running requests of ``TransformersEngine``, and counters."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from rstar2_env.models.forward import cache_argument
from rstar2_env.rollout.engine import FinishReason, Generation, SamplingParams
from rstar2_env.rollout.engines.prefix import Key, PrefixPool
from rstar2_env.rollout.engines.token_sampler import draw_tokens


@dataclass(eq=False)
class Request:
    """One turn to generate, and its state while it runs.

    Attributes:
        prompt: The ids to continue.
        params: Sampling parameters.
        draws: One random number in [0, 1) for each token that may be generated.
        future: Receives the result; a caller that no longer needs it cancels it.
        version: Version of the weights from which the first token is sampled.
        ids: The tokens generated so far.
        logprobs: Log-probability of each of these tokens.
        candidates: Log-probabilities of the most likely tokens at the first positions, if requested.
        keep: Whether the request's cache was computed with the current weights, so that later requests may reuse it.
        slot: Slot of the request in the cache while it runs.
        done: Number of tokens of the prompt and the turn whose keys and values are in the cache.
        leader: Another request that starts with the same tokens, and computes their keys and values; this request
            copies them from the leader's cache. ``None`` if no other request computes them.
        key: The request's tokens when it started, packed by ``key_of``; other requests find its cache by this key.
            Empty if its cache is not offered to other requests.
        number: Position of the request in the order of arrival.
    """

    prompt: list[int]
    params: SamplingParams
    draws: np.ndarray
    future: Future[Generation] = field(default_factory=Future)
    version: int = 0
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    candidates: list[list[float]] = field(default_factory=list)
    keep: bool = True
    slot: int = -1
    done: int = 0
    leader: Request | None = None
    key: Key = b""
    number: int = field(default_factory=itertools.count().__next__)

    def __len__(self) -> int:
        """Number of tokens so far, the prompt included."""
        return len(self.prompt) + len(self.ids)

    def tokens(self, start: int, stop: int) -> list[int]:
        """Return the tokens at positions ``start`` to ``stop - 1``, counted from the beginning of the prompt."""
        own = len(self.prompt)
        if start >= own:
            return self.ids[start - own : stop - own]
        return self.prompt[start:stop] + self.ids[: max(0, stop - own)]

    def draw(self, token: int, logprob: float, candidates: list[float] | None = None) -> None:
        """Append a sampled token to the turn.

        Args:
            token: Id of the token in the vocabulary.
            logprob: Log-probability of the token.
            candidates: Log-probabilities of the most likely tokens at this position, if requested.

        Raises:
            FloatingPointError: The log-probability is not a number.
        """
        if logprob != logprob:
            raise FloatingPointError(
                "The model computes values that are not numbers (NaN), so its weights may have diverged: in "
                "training, continue from an earlier checkpoint with a lower learning rate."
            )
        self.ids.append(token)
        self.logprobs.append(logprob)
        if candidates is not None:
            self.candidates.append(candidates)

    def result(self, reason: FinishReason) -> Generation:
        """Return the tokens generated so far as a finished turn."""
        return Generation(self.ids, self.logprobs, reason, self.version, self.candidates)


Finish = Callable[[Request], FinishReason | None]
"""Function that returns the reason why a request ends with its newest token; ``None`` if the request continues."""


class RunningBatch:
    """Base class of an engine's batches: the running requests, the kept caches, and the sampling of tokens.

    Args:
        model: A causal language model.
        max_prefill_tokens: Maximum number of prompt tokens in one forward pass.
        max_tokens: Maximum number of tokens in the cache; a single request runs even if it needs more.
        finish: Returns why a request has ended; ``None`` if it continues.

    Attributes:
        joins: Whether new requests may start while others run.
        max_tokens: The argument ``max_tokens``; it may be changed between two steps.
        live: The running requests.
        pool: The kept sequences of ended requests.
        prompt_tokens: Number of prompt tokens so far.
        computed_tokens: Number of prompt tokens that were computed, not taken from a kept cache.
        generated_tokens: Number of generated tokens so far.
        preemptions: Number of times that a request lost its place in the cache.
        recomputed_tokens: Number of tokens computed again after preemptions.
    """

    joins: ClassVar[bool]
    live: list[Request]

    def __init__(self, model: PreTrainedModel, max_prefill_tokens: int, max_tokens: int, finish: Finish) -> None:
        self._model, self._max_prefill_tokens, self.max_tokens = model, max_prefill_tokens, max_tokens
        self._finish = finish
        self._cache_argument = cache_argument(model)
        self.pool = PrefixPool()
        self.prompt_tokens = self.computed_tokens = self.generated_tokens = 0
        self.preemptions = self.recomputed_tokens = 0

    def __len__(self) -> int:
        return len(self.live)

    @property
    def tokens(self) -> int:
        """Number of tokens of the running requests."""
        return sum(map(len, self.live))

    def _draw(self, drawing: Sequence[Request], logits: Tensor) -> tuple[Tensor, list[tuple[Request, FinishReason]]]:
        """Draw the next token of each request from its row of logits.

        Returns:
            The tokens, and the requests that end with their token, each with the reason.
        """
        uniform = [request.draws.item(len(request.ids)) for request in drawing]
        tokens, logprobs = draw_tokens(logits, [request.params for request in drawing], uniform)
        candidates = _candidates(drawing, logprobs)
        chosen = logprobs.gather(1, tokens[:, None])[:, 0]
        for row, (request, token, logprob) in enumerate(zip(drawing, tokens.tolist(), chosen.tolist(), strict=True)):
            request.draw(token, logprob, candidates.get(row))
        self.generated_tokens += len(drawing)
        ended = [(request, reason) for request in drawing if (reason := self._finish(request)) is not None]
        return tokens, ended


def _candidates(requests: Sequence[Request], logprobs: Tensor) -> dict[int, list[float]]:
    """Return, for each row whose request asks for candidates, the log-probabilities of the most likely tokens."""
    wanted = {
        row: request.params.candidates
        for row, request in enumerate(requests)
        if request.params.candidates and len(request.ids) < request.params.measured_tokens
    }
    if not wanted:
        return {}
    most = min(logprobs.shape[1], max(wanted.values()))
    found = logprobs[torch.tensor(list(wanted), device=logprobs.device)].topk(most, dim=-1).values.tolist()
    return {row: values[: wanted[row]] for row, values in zip(wanted, found, strict=True)}
