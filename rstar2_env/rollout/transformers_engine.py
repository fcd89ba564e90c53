"""``TransformersEngine``: continuous batching over a Hugging Face causal model, on CPU, CUDA and ROCm.

Covered: requests join the running batch as they arrive and leave it as they end; draws that depend on a request's own
seed alone; the trainer's module can be the engine's, so that weights are never copied. Not covered: a cache kept
between the turns of an episode (each turn's prompt is computed anew), tensor parallelism, paged attention.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rstar2_env.errors import ConfigurationError
from rstar2_env.rollout.batch import Request, RowBatch
from rstar2_env.rollout.engine import FinishReason, Generation, SamplingParams, settle


class TransformersEngine:
    """Generates with a ``transformers`` model that lives in this process.

    One thread of the engine's own computes, as long as there is anything to do; requests may come from any thread and
    any event loop.

    Args:
        model: A causal language model; it is used in place, on whatever device it is. While there is anything to
            generate, its modules are in evaluation mode.
        tokenizer: Its tokenizer, needed only for stop strings.
        max_rows: Requests that run at once; more wait, first come, first served.
        max_prefill_tokens: Most tokens of prompts, padding included, in one forward pass (a longer prompt has one of
            its own). It bounds the memory of a pass, and keeps prompts of unlike length apart. ``None`` is 4,096 on a
            CPU and 32,768 elsewhere.
        max_tokens_in_cache: What ``capacity`` reports.
        seed: Seeds the draws of requests that bring no seed.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | None = None,
        *,
        max_rows: int = 256,
        max_prefill_tokens: int | None = None,
        max_tokens_in_cache: int = 1 << 20,
        seed: int = 0,
    ) -> None:
        if max_prefill_tokens is None:
            max_prefill_tokens = 1 << 12 if model.device.type == "cpu" else 1 << 15
        if max_rows < 1 or max_prefill_tokens < 1:
            raise ConfigurationError(
                f"max_rows and max_prefill_tokens must be positive, not {max_rows} and {max_prefill_tokens}."
            )
        self.model = model
        self.tokenizer = tokenizer
        self._max_rows, self._capacity = max_rows, max_tokens_in_cache
        self._version = 0
        self._seeds = np.random.SeedSequence(seed)
        # The lock guards the queue and the flags below it; the engine's thread alone touches the batch.
        self._lock = threading.Lock()
        self._waiting: deque[Request] = deque()
        self._updates: list[tuple[int, Any, Future[None]]] = []
        self._running = False
        self._thread: ThreadPoolExecutor | None = None
        self._batch = RowBatch(model, max_prefill_tokens)
        self._max_prefill_tokens = max_prefill_tokens
        self._former: list[torch.nn.Module] | None = None

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """Continue ``ids``; requests in flight are computed together.

        Raises:
            ConfigurationError: The prompt is empty, or stop strings were asked for without a tokenizer.
        """
        if not ids:
            raise ConfigurationError("An engine cannot continue an empty prompt.")
        if params.stop and self.tokenizer is None:
            raise ConfigurationError("Stop strings need a tokenizer: pass tokenizer= to TransformersEngine.")
        with self._lock:
            seed: Any = self._seeds.spawn(1)[0] if params.seed is None else params.seed
            request = Request(list(ids), params, np.random.default_rng(seed).random(params.max_tokens))
            self._waiting.append(request)
            if not self._running:
                self._running = True
                if self._thread is None:
                    self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rstar2-engine")
                self._thread.submit(self._run)
        try:
            return await asyncio.wrap_future(request.future)
        finally:
            # Whoever stops waiting does not want the rest.
            request.future.cancel()

    def update_weights(self, version: int, weights: Any = None) -> None:
        """Note the version; with ``weights`` (a state dict), load them into the model, between two forward passes.

        Returns once they are in. Requests in flight go on with the new weights and the cache of the old ones.
        """
        with self._lock:
            if not self._running:
                self._load(version, weights)
                return
            done: Future[None] = Future()
            self._updates.append((version, weights, done))
        done.result()

    def capacity(self) -> int:
        """Tokens that fit into the cache, as configured."""
        return self._capacity

    def close(self) -> None:
        """Cancel what is in flight and end the engine's thread. A closed engine starts again when it is used."""
        with self._lock:
            thread, self._thread = self._thread, None
            for request in [*self._waiting, *self._batch.live]:
                request.future.cancel()
        if thread is not None:
            thread.shutdown(wait=True)

    def _run(self) -> None:
        """Compute until there is nothing left to do; runs in the engine's thread."""
        while True:
            with self._lock:
                updates, self._updates = self._updates, []
                self._running = bool(updates or self._waiting or len(self._batch))
                if not self._running:
                    return
            for version, weights, done in updates:
                try:
                    self._load(version, weights)
                    done.set_result(None)
                except BaseException as error:
                    done.set_exception(error)
            taken: list[Request] = []
            try:
                self._to_evaluation_mode()
                ended = self._step(taken)
            except BaseException as error:
                # Whoever waits must hear of it; afterwards the engine is empty and usable again.
                failed = {id(request): request for request in (*taken, *self._batch.live)}
                self._batch.clear()
                self._to_former_mode()
                for request in failed.values():
                    settle(request.future, error)
                continue
            if not len(self._batch):
                # Before the last results go out, since who receives them may train the same modules at once.
                self._to_former_mode()
            for request, reason in ended:
                settle(request.future, request.result(reason))

    @torch.no_grad()
    def _step(self, taken: list[Request]) -> list[tuple[Request, FinishReason]]:
        """One token for every row, after letting waiting requests in, which are noted in ``taken``."""
        batch = self._batch
        batch.leave([request for request in batch.live if request.future.cancelled()])
        if len(batch):
            batch.forward()
        with self._lock:
            taken += self._next_requests()
        for request in taken:
            request.version = self._version
        batch.admit(taken)
        if not len(batch):
            return []
        ended = [(request, reason) for request in batch.sample() if (reason := self._finish(request)) is not None]
        batch.leave([request for request, _ in ended])
        return ended

    def _next_requests(self) -> list[Request]:
        """Take the requests that may run now from the queue, in the order in which they came."""
        taken: list[Request] = []
        if not self._batch.joins and len(self._batch):
            return taken
        longest = 0
        while self._waiting and len(self._batch) + len(taken) < self._max_rows:
            longest = max(longest, len(self._waiting[0].prompt))
            # A batch that nobody can join later must be computed in one pass.
            if taken and not self._batch.joins and longest * (len(taken) + 1) > self._max_prefill_tokens:
                break
            request = self._waiting.popleft()
            if not request.future.cancelled():
                taken.append(request)
        return taken

    def _finish(self, request: Request) -> FinishReason | None:
        params = request.params
        if request.ids[-1] in params.stop_ids:
            return "stop"
        if params.stop and self.tokenizer is not None:
            # The longest stop string spans at most as many tokens as it has bytes.
            tail = request.ids[-max(len(word.encode()) for word in params.stop) :]
            text = str(self.tokenizer.decode(tail, clean_up_tokenization_spaces=False))
            if any(word in text for word in params.stop):
                return "stop"
        return "length" if len(request.ids) >= params.max_tokens else None

    def _load(self, version: int, weights: Any) -> None:
        if weights is not None:
            self.model.load_state_dict(weights)
        self._version = version

    def _to_evaluation_mode(self) -> None:
        # In training mode dropout would disturb the draws, and gradient checkpointing silently drops the cache.
        if self._former is None:
            self._former = [module for module in self.model.modules() if module.training]
            for module in self._former:
                module.training = False

    def _to_former_mode(self) -> None:
        for module in self._former or ():
            module.training = True
        self._former = None
