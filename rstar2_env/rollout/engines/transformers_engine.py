"""``TransformersEngine``: continuous batching over a Hugging Face causal model, on CPU, CUDA and ROCm.

Covered: requests join the running batch as they arrive and leave it as they end; draws depend only on a request's own
seed; the engine can use the trainer's module, so that weights are never copied; the cache of a turn is kept, so that
the next turn of its episode computes only what is new. Not covered: tensor parallelism, paged attention, keeping
the caches of models with sliding windows or recurrent layers.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Annotated, Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options import Count, Rule, Seed, checked
from rstar2_env.rollout.engine import EngineStats, FinishReason, Generation, SamplingParams, settle
from rstar2_env.rollout.engines import attention
from rstar2_env.rollout.engines.batch import Request, RowBatch
from rstar2_env.rollout.engines.given_tokens import Given, fitting, log_probs
from rstar2_env.rollout.engines.kv import room_for_tokens


class TransformersEngine:
    """Generates with a ``transformers`` model that lives in this process.

    The engine computes in a thread of its own while there are requests, which may come from any thread and any event
    loop.

    Args:
        model: A causal language model; it is used in place, on the device where it is. While the engine generates, its
            modules are in evaluation mode.
        tokenizer: Its tokenizer, needed only for stop strings.
        max_rows: Maximum number of running requests; further ones wait, first come, first served.
        max_prefill_tokens: Maximum number of prompt tokens, padding included, in one forward pass (a longer prompt has
            a pass of its own). It bounds the memory of a pass and separates prompts of different lengths. ``None``
            means 4,096 on a CPU and 32,768 elsewhere.
        max_tokens_in_cache: The value of ``capacity``: caches of ended turns are kept for later turns as long as they
            and the running requests have at most this many tokens together. 0 keeps none. ``None`` means as many as
            fit into a quarter of the device's free memory (on a CPU, of the machine's memory), at most 2**20.
        idle_s: Seconds without a request after which the kept caches are freed.
        seed: Seeds the draws of requests without a seed of their own.
    """

    @checked
    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | None = None,
        *,
        max_rows: Count = 256,
        max_prefill_tokens: Count | None = None,
        max_tokens_in_cache: Annotated[int, Rule(least=0)] | None = None,
        idle_s: Annotated[float, Rule(least=0, unit="seconds", finite=False)] = 30.0,
        seed: Seed = 0,
    ) -> None:
        if max_prefill_tokens is None:
            max_prefill_tokens = 1 << 12 if model.device.type == "cpu" else 1 << 15
        if max_tokens_in_cache is None:
            max_tokens_in_cache = room_for_tokens(model)
        self.model = model
        self.tokenizer = tokenizer
        self._max_rows, self._capacity, self._idle_s = max_rows, max_tokens_in_cache, idle_s
        self._version = 0
        self._seeds = np.random.SeedSequence(seed)
        # The lock guards the queue and the flags below it; only the engine's thread accesses the batch.
        self._lock = threading.Lock()
        self._waiting: deque[Request] = deque()
        self._updates: list[tuple[int, Any, Future[None]]] = []
        self._given: list[Given] = []
        self._running = False
        self._thread: ThreadPoolExecutor | None = None
        self._batch = RowBatch(model, max_prefill_tokens, max_tokens_in_cache)
        self._max_prefill_tokens = max_prefill_tokens
        self._parameters = list(model.parameters())
        self._weights_seen = self._weights_mark()
        self._forgetting = False
        self._used_at = 0.0
        self._idle: threading.Timer | None = None
        self._former: list[torch.nn.Module] | None = None
        self._grouped = attention.can_group(model)

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """Continue ``ids``; requests in flight are computed together.

        Raises:
            ConfigurationError: The prompt is empty, or stop strings were given without a tokenizer.
        """
        if not ids:
            raise ConfigurationError("An engine cannot continue an empty prompt.")
        if params.stop and self.tokenizer is None:
            raise ConfigurationError("Stop strings need a tokenizer: pass tokenizer= to TransformersEngine.")
        with self._lock:
            seed: Any = self._seeds.spawn(1)[0] if params.seed is None else params.seed
            request = Request(list(ids), params, np.random.default_rng(seed).random(params.max_tokens))
            self._waiting.append(request)
            self._begin()
        try:
            return await asyncio.wrap_future(request.future)
        finally:
            # A caller that stops waiting does not need the rest.
            request.future.cancel()

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        """Return the log-probability of each of ``ids`` after ``prompt_ids``, at temperature 1; see ``Scores``.

        Raises:
            ConfigurationError: The prompt is empty.
        """
        if not prompt_ids:
            raise ConfigurationError("An engine cannot score tokens after an empty prompt.")
        if not ids:
            return []
        given = Given(list(prompt_ids), list(ids))
        with self._lock:
            self._given.append(given)
            self._begin()
        try:
            return await asyncio.wrap_future(given.future)
        finally:
            given.future.cancel()

    def update_weights(self, version: int, weights: Any = None) -> None:
        """Record the version; with ``weights`` (a state dict), load them into the model, between two forward passes.

        Returns when they are loaded. Requests in flight continue with the new weights and the cache of the old ones;
        later requests do not reuse caches of the old weights.
        """
        with self._lock:
            if not self._running:
                self._load(version, weights)
                return
            done: Future[None] = Future()
            self._updates.append((version, weights, done))
        done.result()

    def capacity(self) -> int:
        """Number of tokens that fit into the cache, as configured."""
        return self._capacity

    def forget(self) -> None:
        """Free the caches that are kept between turns; a trainer calls this before it needs the memory itself."""
        with self._lock:
            if self._running:
                self._forgetting = True
            else:
                self._batch.forget()

    def stats(self) -> EngineStats:
        """The engine's load and counters; it never preempts requests or recomputes tokens for lack of room."""
        batch = self._batch
        return EngineStats(
            running=len(batch),
            waiting=len(self._waiting),
            kv_usage=min(1.0, (batch.tokens + batch.pool.tokens) / max(1, self._capacity)),
            prompt_tokens=batch.prompt_tokens,
            cached_tokens=batch.prompt_tokens - batch.computed_tokens,
            generated_tokens=batch.generated_tokens,
        )

    def close(self) -> None:
        """Cancel requests in flight, free the caches, and end the threads. The engine restarts when it is next used."""
        self.forget()
        with self._lock:
            thread, self._thread = self._thread, None
            idle, self._idle = self._idle, None
            for request in [*self._waiting, *self._batch.live]:
                request.future.cancel()
            for given in self._given:
                given.future.cancel()
        if idle is not None:
            idle.cancel()
            idle.join()
        if thread is not None:
            thread.shutdown(wait=True)
        # Requests that were in flight when everything was cancelled may have ended regularly.
        self.forget()

    def _begin(self) -> None:
        """Have the engine's thread compute; called with the lock held."""
        if not self._running:
            self._running = True
            if self._thread is None:
                self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rstar2-engine")
            self._thread.submit(self._run)

    def _run(self) -> None:
        """Compute until no requests are left; runs in the engine's thread."""
        while True:
            with self._lock:
                updates, self._updates = self._updates, []
                forgetting, self._forgetting = self._forgetting, False
                if forgetting:
                    self._batch.forget()
                self._running = bool(updates or self._given or self._waiting or len(self._batch))
                if not self._running:
                    self._watch_idleness()
                    return
            for version, weights, done in updates:
                try:
                    self._load(version, weights)
                    done.set_result(None)
                except BaseException as error:
                    done.set_exception(error)
            self._score_given()
            taken: list[Request] = []
            try:
                self._to_evaluation_mode()
                ended = self._step(taken)
            except BaseException as error:
                # Every waiting caller gets the error; afterwards the engine is empty and usable again.
                failed = {id(request): request for request in (*taken, *self._batch.live)}
                self._batch.forget()
                self._batch.clear()
                self._to_former_mode()
                for request in failed.values():
                    settle(request.future, error)
                continue
            if not len(self._batch):
                # Before the last results are delivered, since their receiver may train the same modules at once.
                self._to_former_mode()
            for request, reason in ended:
                settle(request.future, request.result(reason))

    def _score_given(self) -> None:
        """Score what waits for it, one pass of it; runs in the engine's thread."""
        with self._lock:
            waiting = [given for given in self._given if not given.future.cancelled()]
            count = fitting(waiting, self._max_prefill_tokens)
            self._given = waiting[count:]
        if not count:
            return
        found: list[list[float]] | BaseException
        try:
            self._to_evaluation_mode()
            found = log_probs(self.model, waiting[:count])
        except BaseException as error:
            found = error
        if not len(self._batch):
            self._to_former_mode()
        for number, given in enumerate(waiting[:count]):
            settle(given.future, found if isinstance(found, BaseException) else found[number])

    @torch.no_grad()
    def _step(self, taken: list[Request]) -> list[tuple[Request, FinishReason]]:
        """Add waiting requests, which are recorded in ``taken``, and generate one token for every row."""
        batch = self._batch
        if not len(batch):
            self._notice_new_weights()
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
        batch.leave([request for request, _ in ended], keep=True)
        return ended

    def _next_requests(self) -> list[Request]:
        """Take the requests that may run now from the queue, in the order in which they came."""
        taken: list[Request] = []
        if not self._batch.joins and len(self._batch):
            return taken
        longest = 0
        while self._waiting and len(self._batch) + len(taken) < self._max_rows:
            longest = max(longest, len(self._waiting[0].prompt))
            # A batch that cannot be joined later must be computed in one pass.
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
        self._batch.forget()
        if weights is not None:
            self.model.load_state_dict(weights)
        self._version = version

    def _notice_new_weights(self) -> None:
        """Drop caches if the weights were changed in place without a call of ``update_weights``."""
        mark = self._weights_mark()
        if mark != self._weights_seen:
            self._weights_seen = mark
            self._batch.forget()

    def _weights_mark(self) -> int:
        # torch counts in-place changes of every tensor, except those made in inference mode.
        return sum(0 if p.is_inference() else p._version for p in self._parameters)

    def _watch_idleness(self) -> None:
        """Schedule the freeing of kept caches after ``idle_s`` seconds; called with the lock held."""
        self._used_at = time.monotonic()
        if self._idle is None and self._batch.pool.tokens and self._thread is not None:
            self._set_timer(self._idle_s)

    def _set_timer(self, seconds: float) -> None:
        # A daemon, so that an engine that was not closed does not delay the end of the program.
        self._idle = threading.Timer(seconds, self._when_idle)
        self._idle.name, self._idle.daemon = "rstar2-engine-idle", True
        self._idle.start()

    def _when_idle(self) -> None:
        with self._lock:
            if self._idle is not threading.current_thread():
                return
            self._idle = None
            left = self._used_at + self._idle_s - time.monotonic()
            if self._running or not self._batch.pool.tokens:
                return
            if left > 0:
                self._set_timer(left)
            else:
                self._batch.forget()

    def _to_evaluation_mode(self) -> None:
        # In training mode dropout would disturb the draws, and gradient checkpointing silently drops the cache.
        if self._former is None:
            if self._grouped:
                self.model.config._attn_implementation = attention.NAME
            self._former = [module for module in self.model.modules() if module.training]
            for module in self._former:
                module.training = False

    def _to_former_mode(self) -> None:
        if self._grouped and self._former is not None:
            self.model.config._attn_implementation = "sdpa"
        for module in self._former or ():
            module.training = True
        self._former = None
