"""The running rows of ``TransformersEngine``: their cache, their positions, and the forward passes.

A row is a place in the batch. When a request ends, its row becomes dead until a new request takes it. Only when more
than a given share of the rows is dead, or the cache has no room for another token, are the live rows copied together.

The cache of an ended request is kept separately. A prompt that begins with ids that are kept, or that another row
holds, starts with a copy, so only the rest of each prompt is computed. Not covered: keeping caches that cannot be cut
at any token (sliding windows, recurrent layers), or whose keys depend on the length of the whole sequence.
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
from rstar2_env.rollout.engines.kv import RowCache, copied, crop, reusable, supports
from rstar2_env.rollout.engines.prefix import Kept, Key, Layers, PrefixIndex, PrefixPool, key_of
from rstar2_env.rollout.engines.sampling import Sampler

MAX_DEAD = 0.25
"""Share of dead rows above which computing them costs more than copying the others."""

MIN_REUSE = 8
"""Shortest cached beginning, in tokens, that is reused; recomputing a shorter one costs less than copying it."""

MAX_PADDING = 256
"""Tokens of padding in a pass above which a second pass costs less."""


@dataclass(eq=False)
class Request:
    """One turn to generate.

    Attributes:
        prompt: The ids to continue.
        params: How to sample.
        draws: One random number in [0, 1) for each token that may be generated.
        future: Receives the result; cancelled by a caller that no longer needs it.
        version: Version of the weights that the first token is drawn from.
        ids: The tokens so far.
        logprobs: Their log-probabilities.
        keep: Whether its cache was computed with the weights that the next requests will use.
    """

    prompt: list[int]
    params: SamplingParams
    draws: np.ndarray
    future: Future[Generation] = field(default_factory=Future)
    version: int = 0
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    keep: bool = True

    def result(self, reason: FinishReason) -> Generation:
        """The generation so far."""
        return Generation(self.ids, self.logprobs, reason, self.version)


@dataclass(eq=False)
class _Prompt:
    """A prompt to compute, and the part of it that is cached.

    Attributes:
        key: Its ids, as a key of the pool.
        ids: Its ids.
        requests: The requests that begin with it.
        source: Holder of its cached beginning: an entry of the pool, or a running request.
        known: Number of cached tokens.
    """

    key: Key
    ids: list[int]
    requests: list[Request]
    source: Kept | Request | None = None
    known: int = 0

    @property
    def rest(self) -> int:
        """Number of tokens that must be computed."""
        return len(self.ids) - self.known


class RowBatch:
    """Requests that a model generates for together.

    Args:
        model: A causal language model.
        max_prefill_tokens: Maximum number of prompt tokens, padding included, in one forward pass (a single prompt may
            have more).
        max_tokens: Maximum number of tokens of running requests and kept caches together; 0 keeps no caches.

    Attributes:
        joins: Whether requests may join running ones.
        pool: The caches that are kept; ``None`` if the model's caches cannot be reused.
        prompt_tokens: Tokens of all prompts so far.
        computed_tokens: Those of them that were computed.
        generated_tokens: Tokens drawn so far.
    """

    def __init__(self, model: PreTrainedModel, max_prefill_tokens: int, max_tokens: int) -> None:
        self._model, self._max_prefill_tokens, self._max_tokens = model, max_prefill_tokens, max_tokens
        self.joins = supports(model.config)
        self._keeps = self.joins and max_tokens > 0 and reusable(model.config)
        self.pool = PrefixPool()
        self._running: PrefixIndex[Request] = PrefixIndex()
        self.prompt_tokens = self.computed_tokens = self.generated_tokens = 0
        self.clear()

    def clear(self) -> None:
        """Drop every row, but not the kept caches."""
        self._running.clear()
        self._rows: list[Request | None] = []
        self._starts: list[int] = []
        self._cache: RowCache | None = None
        self._plain = DynamicCache()
        self._width = 0
        self._logits = torch.zeros(0, 0)
        self._sampler: Sampler | None = None
        self._starts_tensor: Tensor | None = None

    def forget(self) -> None:
        """Free every kept cache, and keep no cache of anything computed until now."""
        self.pool.clear()
        self._running.clear()
        for request in self.live:
            request.keep = False

    @property
    def live(self) -> list[Request]:
        """The requests in the batch."""
        return [request for request in self._rows if request is not None]

    def __len__(self) -> int:
        return sum(request is not None for request in self._rows)

    def admit(self, fresh: Sequence[Request]) -> None:
        """Compute the prompts of new requests and add them; a batch that cannot be joined must be empty."""
        # The episodes of a group begin with the same prompt: it is computed once.
        same: dict[Key, _Prompt] = {}
        for request in fresh:
            key = key_of(request.prompt)
            if key in same:
                same[key].requests.append(request)
            else:
                same[key] = self._look_up(_Prompt(key, request.prompt, [request]))
        # Prompts with a similar number of tokens left to compute share a pass, the longest first.
        waiting = sorted(same.values(), key=lambda prompt: -prompt.rest)
        while waiting:
            count = self._fitting(waiting)
            self._prefill(waiting[:count])
            waiting = waiting[count:]

    def sample(self) -> list[Request]:
        """Draw each request's next token and append it; return the requests in the order of their rows."""
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
        live = self.live
        self.generated_tokens += len(live)
        return live

    def leave(self, gone: Sequence[Request], *, keep: bool = False) -> None:
        """Remove requests, and keep their caches if ``keep`` is set; their rows become dead."""
        if not gone:
            return
        left = set(map(id, gone))
        for row, request in enumerate(self._rows):
            if request is not None and id(request) in left:
                if self._keeps:
                    self._retire(row, request, keep=keep and request.keep)
                self._rows[row] = None
                # From here on the row attends only to what is computed for it without use, at the first positions.
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

    def _look_up(self, prompt: _Prompt) -> _Prompt:
        """Find out how much of a prompt is cached."""
        if self._keeps:
            kept, common = self.pool.best(prompt.key)
            running, shared = self._running.best(prompt.key)
            source: Kept | Request | None = kept if common >= shared else running
            # The last token is always computed: generation begins with its logits.
            known = min(max(common, shared), len(prompt.ids) - 1)
            if known >= MIN_REUSE:
                prompt.source, prompt.known = source, known
        return prompt

    def _fitting(self, waiting: Sequence[_Prompt]) -> int:
        """How many of these prompts, sorted by decreasing number of tokens to compute, go into one pass."""
        if not self.joins:
            return len(waiting)
        width = waiting[0].rest
        count = min(len(waiting), max(1, self._max_prefill_tokens // width))
        for place, prompt in enumerate(waiting[:count]):
            if 2 * prompt.rest < width and (count - place) * (width - prompt.rest) > MAX_PADDING:
                return place
        return count

    def _prefill(self, fresh: Sequence[_Prompt]) -> None:
        """Compute different prompts in one pass, and add the requests that begin with each."""
        width = max(len(prompt.ids) for prompt in fresh)
        rest = max(prompt.rest for prompt in fresh)
        # All rows end in the same column; what comes before the last ``rest`` columns is cached or padding.
        done = width - rest
        ids = torch.zeros(len(fresh), rest, dtype=torch.long)
        for row, prompt in enumerate(fresh):
            tail = prompt.ids[-rest:]
            ids[row, rest - len(tail) :] = torch.tensor(tail)
            self.prompt_tokens += len(prompt.ids) * len(prompt.requests)
            self.computed_tokens += len(tail)
        device = self._model.device
        begin = torch.tensor([width - len(prompt.ids) for prompt in fresh], device=device)[:, None]
        columns = torch.arange(width, device=device)[None]
        mask, positions = (columns >= begin).long(), (columns - begin).clamp(min=0)[:, done:]
        cache = RowCache(self._model.config) if self.joins else None
        plain = DynamicCache(config=self._model.config)
        if cache is not None and done:
            cache.begin([self._known(prompt, len(prompt.ids) - rest) for prompt in fresh], done, rest)
        logits = self._run(ids.to(device), mask, positions, plain if cache is None else cache.hf)
        requests = [request for prompt in fresh for request in prompt.requests]
        starts = [width - len(request.prompt) for request in requests]
        if len(requests) > len(fresh):
            copies = torch.tensor([row for row, prompt in enumerate(fresh) for _ in prompt.requests], device=device)
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
        if self._keeps:
            self._note(fresh)

    def _known(self, prompt: _Prompt, tokens: int) -> Layers | None:
        """The cache of a prompt's first tokens, from its holder."""
        if prompt.source is None or tokens <= 0:
            return None
        if isinstance(prompt.source, Kept):
            return crop(prompt.source.layers, tokens)
        assert self._cache is not None  # a running request has its cache there
        row = self._rows.index(prompt.source)
        return self._cache.view(row, self._starts[row], self._starts[row] + tokens)

    def _note(self, fresh: Sequence[_Prompt]) -> None:
        """Record the holders of these prompts, and that the caches that they continue are no longer needed."""
        for prompt in fresh:
            if prompt.key not in self._running:
                self._running.add(prompt.key, prompt.requests[0])
            if isinstance(prompt.source, Kept) and prompt.known == prompt.source.tokens:
                self.pool.drop(prompt.source.key)
        self.pool.shrink(self._room)

    def _retire(self, row: int, request: Request, *, keep: bool) -> None:
        """Remove a request from the running ones, and keep its cache if ``keep`` is set."""
        key = key_of(request.prompt)
        if self._running.get(key) is request:
            self._running.pop(key)
        if keep and self._cache is not None:
            cache, start, width = self._cache, self._starts[row], self._width
            # The token drawn last has not been computed yet.
            done = key_of([*request.prompt, *request.ids[:-1]])
            room = self._room + len(request.prompt) + len(request.ids)
            self.pool.keep(done, lambda: copied(cache.view(row, start, width)), room)

    @property
    def tokens(self) -> int:
        """Number of tokens of the running requests."""
        return sum(len(request.prompt) + len(request.ids) for request in self.live)

    @property
    def _room(self) -> int:
        """Number of tokens that may be kept besides the running requests."""
        return self._max_tokens - self.tokens

    def _join(
        self, fresh: Sequence[Request], starts: Sequence[int], cache: RowCache, logits: Tensor, width: int
    ) -> None:
        assert self._cache is not None  # requests join only a running batch
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
        # The running requests have grown since the last prompt came in.
        self.pool.shrink(self._room)

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
