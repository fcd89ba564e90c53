"""Runs the requests of ``TransformersEngine`` by static batching, for models whose caches cannot be merged.

Such models have sliding windows, recurrent layers, or an attention that the engine cannot replace. A batch starts when
the previous batch has ended, and every prompt is computed as a whole. Not covered: keeping caches between turns.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from rstar2_env.rollout.engine import FinishReason
from rstar2_env.rollout.engines.batch import Finish, Request, RunningBatch
from rstar2_env.rollout.engines.prefix import key_of

MAX_DEAD = 0.25
"""Maximum share of rows of ended requests in a batch. Above it, the rows of running requests are copied to a smaller
batch, since that costs less than computing the ended rows."""


class PlainBatch(RunningBatch):
    """A batch of requests that begin together; it implements ``RunningBatch``.

    Args:
        model: A causal language model.
        max_prefill_tokens: Maximum number of prompt tokens, padding included; a single prompt may have more.
        max_tokens: Maximum number of tokens that the cache reserves: the number of requests times the largest sum of a
            request's prompt and its ``params.max_tokens``; a single request runs even if it needs more.
        finish: Returns why a request has ended; ``None`` if it continues.
    """

    joins = False

    def __init__(self, model: PreTrainedModel, max_prefill_tokens: int, max_tokens: int, *, finish: Finish) -> None:
        super().__init__(model, max_prefill_tokens, max_tokens, finish)
        self.clear()

    def clear(self) -> None:
        """Remove all requests, and free their cache."""
        self.live = []
        self._rows: list[Request | None] = []
        self._starts = self._last = torch.zeros(0, dtype=torch.long)
        self._cache = DynamicCache()
        self._width = 0
        self._logits: Tensor | None = None

    def forget(self) -> None:
        """Do nothing: no caches are kept."""

    def has_room(self, fresh: Sequence[Request]) -> bool:
        """Whether requests that begin together fit into the cache; a single request always fits."""
        longest = max(len(request) for request in fresh)
        most = max(len(request.prompt) + request.params.max_tokens for request in fresh)
        count = len(fresh)
        return count == 1 or (count * longest <= self._max_prefill_tokens and count * most <= self.max_tokens)

    def shed(self) -> list[Request]:
        """Return an empty list: a batch reserves room for all of its tokens when it begins, so it preempts nothing."""
        return []

    def admit(self, fresh: Sequence[Request]) -> None:
        """Compute the prompts of new requests; the batch must be empty."""
        if not fresh:
            return
        # The episodes of a group begin with the same prompt, which is computed once.
        distinct = {key_of(request.prompt): request.prompt for request in fresh}
        rows = {key: row for row, key in enumerate(distinct)}
        width = max(map(len, distinct.values()))
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        for row, prompt in enumerate(distinct.values()):
            ids[row, width - len(prompt) :] = torch.tensor(prompt)
            self.computed_tokens += len(prompt)
        device = self._model.device
        starts = torch.tensor([width - len(prompt) for prompt in distinct.values()], device=device)
        self._cache = DynamicCache(config=self._model.config)
        logits = self._forward(ids.to(device), starts, width)
        copies = torch.tensor([rows[key_of(request.prompt)] for request in fresh], device=device)
        self.live, self._rows = list(fresh), list(fresh)
        self._starts, self._width = starts[copies], width
        self._logits = logits[copies]
        if len(fresh) > len(rows):
            self._cache.batch_select_indices(copies)
        self.prompt_tokens += sum(len(request.prompt) for request in fresh)

    def leave(self, gone: Sequence[Request], *, keep: bool = False) -> None:
        """Remove requests; their rows stay in the computation until there are many of them."""
        left = set(map(id, gone))
        self.live = [request for request in self.live if id(request) not in left]
        self._rows = [None if id(request) in left else request for request in self._rows]
        if not len(self):
            self.clear()

    def step(self) -> list[tuple[Request, FinishReason]]:
        """Sample each request's next token; return the requests that end with that token, each with the reason."""
        if self._logits is None:
            dead = len(self._rows) - len(self)
            if dead > MAX_DEAD * len(self._rows):
                self._compact()
            self._width += 1
            self._logits = self._forward(self._last[:, None], self._starts, self._width)
        kept = [row for row, request in enumerate(self._rows) if request is not None]
        rows = torch.tensor(kept, device=self._logits.device)
        tokens, ended = self._draw(self.live, self._logits[rows])
        self._last = tokens.new_zeros(len(self._rows)).index_copy_(0, rows, tokens)
        self._logits = None
        self.leave([request for request, _ in ended])
        return ended

    def _compact(self) -> None:
        """Remove the rows of ended requests."""
        rows = torch.tensor(
            [row for row, request in enumerate(self._rows) if request is not None], device=self._last.device
        )
        self._rows = list(self.live)
        self._starts, self._last = self._starts[rows], self._last[rows]
        self._cache.batch_select_indices(rows)

    def _forward(self, ids: Tensor, starts: Tensor, width: int) -> Tensor:
        """Run the model on new ids, and return the logits at each row's last id: (rows, vocabulary).

        Args:
            ids: The new ids, in the last columns of the batch.
            starts: The column in which each row's sequence begins; earlier columns are padding.
            width: Number of columns, cached ones included.
        """
        columns = torch.arange(width, device=ids.device)[None]
        output = self._model(
            input_ids=ids,
            attention_mask=(columns >= starts[:, None]).long(),
            position_ids=(columns - starts[:, None]).clamp(min=0)[:, width - ids.shape[1] :],
            use_cache=True,
            logits_to_keep=1,
            **{self._cache_argument: self._cache},
        )
        logits: Tensor = output.logits[:, -1].float()
        return logits
