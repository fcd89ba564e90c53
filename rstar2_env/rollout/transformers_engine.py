"""``TransformersEngine``: continuous batching over a Hugging Face causal model, on CPU, CUDA and ROCm.

Covered: requests join the running batch as they arrive and leave it as they end; draws that depend on a request's own
seed alone; the trainer's module can be the engine's, so that weights are never copied. Not covered: a cache kept between
the turns of an episode (each turn's prompt is computed anew), tensor parallelism, paged attention.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from rstar2_env.errors import ConfigurationError
from rstar2_env.rollout import kv
from rstar2_env.rollout.engine import FinishReason, Generation, SamplingParams


@dataclass(eq=False)
class _Request:
    prompt: list[int]
    params: SamplingParams
    future: asyncio.Future[Generation]
    version: int
    draws: np.ndarray
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


class TransformersEngine:
    """Generates with a ``transformers`` model that lives in this process.

    Args:
        model: A causal language model; it is used in place, in whatever mode and on whatever device it is.
        tokenizer: Its tokenizer, needed only for stop strings.
        max_rows: Requests that run at once; more wait, first come, first served.
        max_tokens_in_cache: What ``capacity`` reports.
        seed: Seeds the draws of requests that bring no seed.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | None = None,
        *,
        max_rows: int = 256,
        max_tokens_in_cache: int = 1 << 20,
        seed: int = 0,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self._max_rows, self._capacity = max_rows, max_tokens_in_cache
        self._joins = kv.supports(model.config)
        self._version = 0
        self._seeds = np.random.SeedSequence(seed)
        self._waiting: list[_Request] = []
        self._rows: list[_Request] = []
        self._cache: DynamicCache | None = None
        self._mask = torch.zeros(0, 0, dtype=torch.long)
        self._last = torch.zeros(0, dtype=torch.long)
        self._logits = torch.zeros(0, 0)
        self._driver: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rstar2-engine")

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """Continue ``ids``; requests in flight are computed together.

        Raises:
            ConfigurationError: The prompt is empty, or stop strings were asked for without a tokenizer.
        """
        if not ids:
            raise ConfigurationError("An engine cannot continue an empty prompt.")
        if params.stop and self.tokenizer is None:
            raise ConfigurationError("Stop strings need a tokenizer: pass tokenizer= to TransformersEngine.")
        loop = asyncio.get_running_loop()
        seed: Any = self._seeds.spawn(1)[0] if params.seed is None else params.seed
        draws = np.random.default_rng(seed).random(params.max_tokens)
        request = _Request(list(ids), params, loop.create_future(), self._version, draws)
        self._waiting.append(request)
        if self._driver is None or self._driver.done():
            self._driver = loop.create_task(self._drive())
        return await request.future

    def update_weights(self, version: int, weights: Any = None) -> None:
        """Note the version; with ``weights`` (a state dict), load them into the model."""
        if weights is not None:
            self.model.load_state_dict(weights)
        self._version = version

    def capacity(self) -> int:
        """Tokens that fit into the cache, as configured."""
        return self._capacity

    def close(self) -> None:
        """End the engine's thread."""
        self._thread.shutdown(wait=True)

    async def _drive(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting or self._rows:
                for request, reason in await loop.run_in_executor(self._thread, self._advance):
                    if not request.future.done():
                        generation = Generation(request.ids, request.logprobs, reason, request.version)
                        request.future.set_result(generation)
        except BaseException as error:
            # Whoever waits must hear of it; afterwards the engine is empty and usable again.
            failed, self._rows, self._waiting, self._cache = [*self._rows, *self._waiting], [], [], None
            for request in failed:
                if not request.future.done():
                    if isinstance(error, asyncio.CancelledError):
                        request.future.cancel()
                    else:
                        request.future.set_exception(error)
            if isinstance(error, asyncio.CancelledError):
                raise

    @torch.inference_mode()
    def _advance(self) -> list[tuple[_Request, FinishReason]]:
        """One token for every running row, after letting waiting requests in."""
        self._leave([row for row, request in enumerate(self._rows) if request.future.done()])
        self._admit()
        if not self._rows:
            return []
        ended: list[tuple[_Request, FinishReason]] = []
        gone: list[int] = []
        for row, (request, reason) in enumerate(zip(self._rows, self._sample(), strict=True)):
            if reason is not None:
                ended.append((request, reason))
                gone.append(row)
        self._leave(gone)
        if self._rows:
            self._forward()
        return ended

    def _admit(self) -> None:
        if not self._waiting or (self._rows and not self._joins):
            return
        room = self._max_rows - len(self._rows)
        fresh = [request for request in self._waiting[:room] if not request.future.done()]
        self._waiting = self._waiting[room:]
        if not fresh:
            return
        device = self.model.device
        width = max(len(request.prompt) for request in fresh)
        ids = torch.zeros(len(fresh), width, dtype=torch.long)
        mask = torch.zeros(len(fresh), width, dtype=torch.long)
        for row, request in enumerate(fresh):
            ids[row, width - len(request.prompt) :] = torch.tensor(request.prompt)
            mask[row, width - len(request.prompt) :] = 1
        ids, mask = ids.to(device), mask.to(device)
        cache = kv.growing_cache(self.model.config) if self._joins else DynamicCache(config=self.model.config)
        logits = self._run(ids, mask, cache)
        if self._cache is None or not self._rows:
            self._cache, self._mask, self._logits = cache, mask, logits
        else:
            kv.join(self._cache, cache)
            wide = max(self._mask.shape[1], width)
            self._mask = torch.cat([_left_pad(self._mask, wide), _left_pad(mask, wide)])
            self._logits = torch.cat([self._logits, logits])
        self._rows = [*self._rows, *fresh]

    def _run(self, ids: Tensor, mask: Tensor, cache: DynamicCache) -> Tensor:
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        output = self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return output.logits[:, -1].float()

    def _forward(self) -> None:
        assert self._cache is not None  # there are rows, so they have a cache
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(self._rows), 1)], dim=1)
        self._logits = self._run(self._last[:, None], self._mask, self._cache)

    def _sample(self) -> list[FinishReason | None]:
        """Draw each row's next token from the logits; say which rows it ends."""
        requests, logits = self._rows, self._logits
        temperature = logits.new_tensor([request.params.temperature for request in requests])
        logits = logits / torch.where(temperature > 0, temperature, 1.0)[:, None]
        logprobs = torch.log_softmax(logits, dim=-1)
        draws = logits.new_tensor([float(r.draws[len(r.ids)]) for r in requests])
        tokens = _draw(_filtered(logprobs, requests).exp(), draws)
        tokens = torch.where(temperature > 0, tokens, logits.argmax(-1))
        self._last = tokens
        chosen = logprobs.gather(1, tokens[:, None])[:, 0].tolist()
        reasons: list[FinishReason | None] = []
        for request, token, logprob in zip(requests, tokens.tolist(), chosen, strict=True):
            request.ids.append(token)
            request.logprobs.append(logprob)
            reasons.append(self._finish(request))
        return reasons

    def _finish(self, request: _Request) -> FinishReason | None:
        params = request.params
        if request.ids[-1] in params.stop_ids:
            return "stop"
        if params.stop and self.tokenizer is not None:
            # The longest stop string spans at most as many tokens as it has bytes.
            tail = request.ids[-max(len(word.encode()) for word in params.stop) :]
            text = self.tokenizer.decode(tail)
            if any(word in text for word in params.stop):
                return "stop"
        return "length" if len(request.ids) >= params.max_tokens else None

    def _leave(self, gone: Sequence[int]) -> None:
        """Take rows out of the batch, and positions that no row uses any more out of the cache."""
        if not gone:
            return
        left = set(gone)
        keep = [row for row in range(len(self._rows)) if row not in left]
        self._rows = [self._rows[row] for row in keep]
        if not keep:
            self._cache = None
            return
        assert self._cache is not None  # there were rows, so they had a cache
        rows = torch.tensor(keep, device=self._mask.device)
        self._mask = self._mask[rows]
        skip = int(self._mask.argmax(dim=1).min()) if self._joins else 0
        self._mask = self._mask[:, skip:]
        self._logits, self._last = self._logits[rows], self._last[rows]
        if self._joins:
            kv.select_rows(self._cache, rows, skip)
        else:
            self._cache.batch_select_indices(rows)


def _left_pad(mask: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(mask, (width - mask.shape[1], 0))


def _filtered(logprobs: Tensor, requests: Sequence[_Request]) -> Tensor:
    """Set what top-k and top-p leave out to minus infinity."""
    if all(r.params.top_k == 0 and r.params.top_p >= 1 for r in requests):
        return logprobs
    ordered, order = logprobs.sort(dim=-1, descending=True)
    rank = torch.arange(logprobs.shape[1], device=logprobs.device)[None]
    top_k = torch.tensor([r.params.top_k or logprobs.shape[1] for r in requests], device=logprobs.device)[:, None]
    top_p = logprobs.new_tensor([r.params.top_p for r in requests])[:, None]
    before = ordered.exp().cumsum(-1) - ordered.exp()
    ordered = ordered.masked_fill((rank >= top_k) | ((before >= top_p) & (rank > 0)), -torch.inf)
    return torch.empty_like(logprobs).scatter_(1, order, ordered)


def _draw(weights: Tensor, uniform: Tensor) -> Tensor:
    """Invert the cumulative distribution of each row at its uniform number: (rows, vocabulary), (rows,) to (rows,)."""
    total = weights.double().cumsum(-1)
    index = torch.searchsorted(total, (uniform.double() * total[:, -1])[:, None], right=True)[:, 0]
    # Rounding may point past the last token with any weight.
    last = weights.shape[1] - 1 - (weights.flip(-1) > 0).int().argmax(-1)
    return torch.minimum(index, last)
