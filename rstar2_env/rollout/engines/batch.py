"""``Batch``: the base of the two kinds of batches of ``TransformersEngine``, with their counters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from torch import Tensor
from transformers import PreTrainedModel

from rstar2_env.rollout.engine import FinishReason
from rstar2_env.rollout.engines.prefix import PrefixPool
from rstar2_env.rollout.engines.request import Request
from rstar2_env.rollout.engines.token_sampler import draw_next

Finish = Callable[[Request], FinishReason | None]
"""Returns the reason why a request ends with its newest token; ``None`` if it continues."""


class Batch:
    """The running requests of an engine, and the tokens that it draws for them.

    Args:
        model: A causal language model.
        max_prefill_tokens: Maximum number of prompt tokens in one forward pass.
        max_tokens: Maximum number of tokens in the cache; a single request always runs.
        finish: Whether a request has ended.

    Attributes:
        joins: Whether requests may join running ones.
        max_tokens: See above; it may be changed between two steps.
        live: The running requests.
        pool: The kept sequences of ended requests.
        prompt_tokens: Number of prompt tokens so far.
        computed_tokens: Number of prompt tokens that were computed.
        generated_tokens: Number of generated tokens so far.
        preemptions: Number of times that a request lost its place in the cache.
        recomputed_tokens: Number of tokens computed again after preemptions.
    """

    joins: ClassVar[bool]
    live: list[Request]

    def __init__(self, model: PreTrainedModel, max_prefill_tokens: int, max_tokens: int, finish: Finish) -> None:
        self._model, self._max_prefill_tokens, self.max_tokens = model, max_prefill_tokens, max_tokens
        self._finish = finish
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
        """Draw the next token of each request from its row of logits; return the tokens and the ended requests."""
        tokens = draw_next(drawing, logits)
        self.generated_tokens += len(drawing)
        ended = [(request, reason) for request in drawing if (reason := self._finish(request)) is not None]
        return tokens, ended
