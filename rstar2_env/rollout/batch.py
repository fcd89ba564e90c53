"""The running rows of ``TransformersEngine``: their cache, their positions, and the forward passes.

A row is a place in the batch. A request that ends leaves its row dead; the next that comes takes it. Only when more
than a share of the rows is dead, or the cache has no room for another token, are the live ones copied together.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from rstar2_env.rollout.engine import FinishReason, Generation, SamplingParams
from rstar2_env.rollout.kv import RowCache, supports
from rstar2_env.rollout.sampling import Sampler

MAX_DEAD = 0.25
"""Share of dead rows from which on computing them costs more than copying the others."""


@dataclass(eq=False)
class Request:
    """One turn to generate.

    Attributes:
        prompt: The ids to continue.
        params: How to sample.
        draws: One number in [0, 1) for each token that may come.
        future: Where the result goes; cancelled by whoever does not want it any more.
        version: Version of the weights that the first token is drawn from.
        ids: The tokens so far.
        logprobs: Their log-probabilities.
    """

    prompt: list[int]
    params: SamplingParams
    draws: np.ndarray
    future: Future[Generation] = field(default_factory=Future)
    version: int = 0
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)

    def result(self, reason: FinishReason) -> Generation:
        """The generation as it stands."""
        return Generation(self.ids, self.logprobs, reason, self.version)


class RowBatch:
    """Requests that a model generates for together.

    Args:
        model: A causal language model.
        max_prefill_tokens: Most tokens of prompts, padding included, in one forward pass (one prompt may have more).
    """

    def __init__(self, model: PreTrainedModel, max_prefill_tokens: int) -> None:
        self._model, self._max_prefill_tokens = model, max_prefill_tokens
        self.joins = supports(model.config)
        self.clear()

    def clear(self) -> None:
        """Forget every row."""
        self._rows: list[Request | None] = []
        self._starts: list[int] = []
        self._cache: RowCache | None = None
        self._plain = DynamicCache()
        self._width = 0
        self._logits = torch.zeros(0, 0)
        self._sampler: Sampler | None = None
        self._starts_tensor: Tensor | None = None

    @property
    def live(self) -> list[Request]:
        """The requests in the batch."""
        return [request for request in self._rows if request is not None]

    def __len__(self) -> int:
        return sum(request is not None for request in self._rows)

    def admit(self, fresh: Sequence[Request]) -> None:
        """Compute the prompts of new requests and let them in; rows that cannot join need an empty batch."""
        # The episodes of a group begin with the same prompt: it is computed once.
        same: dict[tuple[int, ...], list[Request]] = {}
        for request in fresh:
            same.setdefault(tuple(request.prompt), []).append(request)
        # Prompts of a like length share a pass, and the longest come first, so that the others fit beside them.
        waiting = sorted(same.items(), key=lambda item: -len(item[0]))
        while waiting:
            width = len(waiting[0][0])
            count = max(1, self._max_prefill_tokens // width) if self.joins else len(waiting)
            self._prefill(waiting[:count], width)
            waiting = waiting[count:]

    def sample(self) -> list[Request]:
        """Draw each request's next token, and append it; returns the requests in the order of their rows."""
        if self._sampler is None:
            params = [SamplingParams(1, temperature=0.0) if r is None else r.params for r in self._rows]
            self._sampler = Sampler(params, self._logits.device)
        uniform = [0.0 if r is None else float(r.draws[len(r.ids)]) for r in self._rows]
        self._last, logprobs = self._sampler.draw(self._logits, uniform)
        for request, token, logprob in zip(self._rows, self._last.tolist(), logprobs.tolist(), strict=True):
            if request is None:
                continue
            if logprob != logprob:
                raise FloatingPointError("The model's logits are not numbers; its weights may have diverged.")
            request.ids.append(token)
            request.logprobs.append(logprob)
        return self.live

    def leave(self, gone: Sequence[Request]) -> None:
        """Take requests out; their rows are dead from now on."""
        if not gone:
            return
        left = set(map(id, gone))
        for row, request in enumerate(self._rows):
            if request is not None and id(request) in left:
                self._rows[row] = None
                # From here on the row sees only what is computed for it in vain, at the first positions.
                self._starts[row] = self._width
        self._changed()
        if not len(self):
            self.clear()

    def forward(self) -> None:
        """Compute the logits that follow the tokens drawn last."""
        dead = len(self._rows) - len(self)
        if dead > MAX_DEAD * len(self._rows) or (self._cache is not None and self._cache.full):
            self._compact()
        self._width += 1
        starts = self._starts_on(self._last.device)
        mask = (torch.arange(self._width, device=starts.device)[None] >= starts[:, None]).long()
        positions = (self._width - 1 - starts)[:, None]
        cache = self._plain if self._cache is None else self._cache.hf
        self._logits = self._run(self._last[:, None], mask, positions, cache)

    def _prefill(self, fresh: Sequence[tuple[tuple[int, ...], list[Request]]], width: int) -> None:
        """Compute different prompts in one pass, and let in the requests that begin with each."""
        ids = torch.zeros(len(fresh), width, dtype=torch.long)
        for row, (prompt, _) in enumerate(fresh):
            ids[row, width - len(prompt) :] = torch.tensor(prompt)
        device = self._model.device
        begin = torch.tensor([width - len(prompt) for prompt, _ in fresh], device=device)[:, None]
        columns = torch.arange(width, device=device)[None]
        mask, positions = (columns >= begin).long(), (columns - begin).clamp(min=0)
        cache = RowCache(self._model.config) if self.joins else None
        plain = DynamicCache(config=self._model.config)
        logits = self._run(ids.to(device), mask, positions, plain if cache is None else cache.hf)
        requests = [request for _, same in fresh for request in same]
        starts = [width - len(request.prompt) for request in requests]
        if len(requests) > len(fresh):
            copies = torch.tensor([row for row, (_, same) in enumerate(fresh) for _ in same], device=device)
            logits = logits[copies]
            if cache is None:
                plain.batch_select_indices(copies)
            else:
                cache.select(copies, 0)
        if self._cache is None or cache is None:
            self._rows, self._starts = list(requests), starts
            self._cache, self._plain, self._width, self._logits = cache, plain, width, logits
        else:
            self._join(requests, starts, cache, logits, width)
        self._changed()

    def _join(
        self, fresh: Sequence[Request], starts: Sequence[int], cache: RowCache, logits: Tensor, width: int
    ) -> None:
        assert self._cache is not None  # whoever joins joins a running batch
        wider = max(0, width - self._width)
        shift = max(0, self._width - width)
        self._width += wider
        self._starts = [start + wider for start in self._starts]
        dead = [row for row, request in enumerate(self._rows) if request is None]
        slots = [*dead, *range(len(self._rows), len(self._rows) + len(fresh))][: len(fresh)]
        rows = max(len(self._rows), slots[-1] + 1)
        self._rows += [None] * (rows - len(self._rows))
        self._starts += [0] * (rows - len(self._starts))
        for slot, request, start in zip(slots, fresh, starts, strict=True):
            self._rows[slot], self._starts[slot] = request, start + shift
        places = torch.tensor(slots, device=logits.device)
        self._cache.put(places, cache, rows)
        if rows > len(self._logits):
            self._logits = torch.nn.functional.pad(self._logits, (0, 0, 0, rows - len(self._logits)))
        self._logits[places] = logits

    def _compact(self) -> None:
        """Copy the live rows together, without the positions that none of them uses."""
        keep = [row for row, request in enumerate(self._rows) if request is not None]
        skip = min(self._starts[row] for row in keep) if self._cache is not None else 0
        rows = torch.tensor(keep, device=self._last.device)
        self._rows = [self._rows[row] for row in keep]
        self._starts = [self._starts[row] - skip for row in keep]
        self._width -= skip
        self._last = self._last[rows]
        if self._cache is not None:
            self._cache.select(rows, skip)
        else:
            self._plain.batch_select_indices(rows)
        self._changed()

    def _changed(self) -> None:
        self._sampler = self._starts_tensor = None

    def _starts_on(self, device: torch.device) -> Tensor:
        if self._starts_tensor is None:
            self._starts_tensor = torch.tensor(self._starts, device=device)
        return self._starts_tensor

    def _run(self, ids: Tensor, mask: Tensor, positions: Tensor, cache: DynamicCache) -> Tensor:
        output = self._model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: Tensor = output.logits[:, -1].float()
        return logits
