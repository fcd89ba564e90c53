"""``Request``: one turn that an engine in this process generates."""

from __future__ import annotations

import itertools
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np

from rstar2_env.rollout.engine import FinishReason, Generation, SamplingParams
from rstar2_env.rollout.engines.prefix import Key


@dataclass(eq=False)
class Request:
    """One turn to generate.

    Attributes:
        prompt: The ids to continue.
        params: Sampling parameters.
        draws: One random number in [0, 1) for each token that may be generated.
        future: Receives the result; a caller that no longer needs it cancels it.
        version: Version of the weights from which the first token is sampled.
        ids: The tokens so far.
        logprobs: Their log-probabilities.
        candidates: Log-probabilities of the most likely tokens at the first positions, if requested.
        keep: Whether its cache was computed with the weights that the next requests will use.
        slot: Its slot in the cache while it runs.
        done: Number of tokens, those of the prompt included, whose keys and values are in the cache.
        leader: A request with the same tokens that computes them; this request copies its cache.
        key: Its tokens at the beginning, if other requests may reuse them.
        number: Increases in the order of arrival.
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
        """Number of tokens so far, the prompt's included."""
        return len(self.prompt) + len(self.ids)

    def tokens(self, start: int, stop: int) -> list[int]:
        """Some of its tokens, the prompt's included."""
        own = len(self.prompt)
        if start >= own:
            return self.ids[start - own : stop - own]
        return self.prompt[start:stop] + self.ids[: max(0, stop - own)]

    def draw(self, token: int, logprob: float, candidates: list[float] | None = None) -> None:
        """Append a token.

        Args:
            token: Its id.
            logprob: Its log-probability.
            candidates: Log-probabilities of the most likely tokens at this position, if requested.

        Raises:
            FloatingPointError: The log-probability is not a number.
        """
        if logprob != logprob:
            raise FloatingPointError("The model's logits are not numbers; its weights may have diverged.")
        self.ids.append(token)
        self.logprobs.append(logprob)
        if candidates is not None:
            self.candidates.append(candidates)

    def result(self, reason: FinishReason) -> Generation:
        """The generation so far."""
        return Generation(self.ids, self.logprobs, reason, self.version, self.candidates)
