"""``TransformersEngine``: continuous batching over a Hugging Face causal model, on CPU, CUDA and ROCm.

Covered: requests join the running batch as they arrive and leave it as they end; draws depend only on a request's own
seed; the engine can use the trainer's module without copying weights; the cache of a turn is kept, so the next turn of
its episode computes only the new tokens. Not covered: tensor parallelism, paged attention, keeping the caches of models
with sliding windows or recurrent layers.
"""

from __future__ import annotations

import asyncio
import math
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
from rstar2_env.core.options.declare import Count, Rule, Seed, checked
from rstar2_env.rollout.engine import (
    EngineStats,
    FinishReason,
    Generation,
    SamplingParams,
    check_candidates,
    check_prompt,
    settle,
)
from rstar2_env.rollout.engines.attention import can_pack
from rstar2_env.rollout.engines.batch import Request
from rstar2_env.rollout.engines.given_tokens import ScoreRequest, fitting, log_probs
from rstar2_env.rollout.engines.packed_batch import PackedBatch
from rstar2_env.rollout.engines.plain_batch import PlainBatch
from rstar2_env.rollout.engines.room import MOST_TOKENS, free_bytes, token_bytes
from rstar2_env.rollout.engines.slots import supports

_NARROW = 256
"""Largest hidden size of the models for which one CPU thread is faster than several."""


class TransformersEngine:
    """Generates with a ``transformers`` model that lives in this process.

    The engine computes in a thread of its own while there are requests. Requests may come from any thread and any event
    loop.

    Args:
        model: A causal language model; it is used in place, on its current device. While the engine generates, its
            modules are in evaluation mode.
        tokenizer: Tokenizer of the model, needed only for stop strings.
        max_rows: Maximum number of running requests; further requests wait in order of arrival.
        max_prefill_tokens: Maximum number of prompt tokens, padding included, in one forward pass: a bound on the
            memory of the pass. A longer prompt is divided among several passes (``packed_batch``), or, in a model for
            which this is not possible, has its own pass (``plain_batch``). ``None`` means 4,096 on a CPU and 32,768
            elsewhere.
        max_tokens_in_cache: Maximum number of tokens in the cache (``capacity``): running requests and the kept caches
            of ended turns together, padding included. If they need more, kept caches are dropped first; then the newest
            requests are preempted and computed again later. One request always runs. ``None`` means as many tokens as
            fit into ``cache_share`` of the free memory, at most 2**20. 0 keeps no caches of ended turns, and limits
            running requests like ``None``.
        cache_share: Share of the device's free memory for the cache; the free memory is measured whenever the engine
            begins to compute with an empty cache. ``None`` means 0.25 on a CPU and 0.5 elsewhere.
        idle_s: Seconds without a request after which the kept caches are freed.
        seed: Seeds the draws of requests without a seed of their own.
        threads: CPU threads of a forward pass. ``None`` means 1 for a model with a hidden size of at most 256, whose
            layers take less time than synchronizing the threads, and torch's setting for larger models.
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
        cache_share: Annotated[float, Rule(above=0, most=1)] | None = None,
        idle_s: Annotated[float, Rule(least=0, unit="seconds", finite=False)] = 30.0,
        seed: Seed = 0,
        threads: Count | None = None,
    ) -> None:
        if max_prefill_tokens is None:
            max_prefill_tokens = 1 << 12 if model.device.type == "cpu" else 1 << 15
        self.model = model
        self.tokenizer = tokenizer
        self._max_rows, self._max_tokens, self._idle_s = max_rows, max_tokens_in_cache, idle_s
        self._cache_share = cache_share or (0.25 if model.device.type == "cpu" else 0.5)
        self._version = 0
        self._seeds = np.random.SeedSequence(seed)
        # The lock guards the following queue and flags; only the engine's thread accesses the batch.
        self._lock = threading.Lock()
        self._waiting: deque[Request] = deque()
        self._updates: list[tuple[int, Any, Future[None]]] = []
        self._given: list[ScoreRequest] = []
        self._running = False
        self._thread: ThreadPoolExecutor | None = None
        room = self._room()
        self._batch: PackedBatch | PlainBatch = PlainBatch(model, max_prefill_tokens, room, finish=self._finish)
        if supports(model.config) and can_pack(model):
            keep = max_tokens_in_cache != 0
            self._batch = PackedBatch(model, max_prefill_tokens, room, keep=keep, finish=self._finish)
        self._max_prefill_tokens = max_prefill_tokens
        self._parameters = list(model.parameters())
        self._weights_seen = self._weights_mark()
        self._forgetting = False
        self._used_at = 0.0
        self._idle: threading.Timer | None = None
        self._former: list[torch.nn.Module] | None = None
        width = getattr(model.config.get_text_config(), "hidden_size", math.inf)
        if threads is None and model.device.type == "cpu" and width <= _NARROW:
            threads = 1
        self._threads, self._usual_threads = threads, torch.get_num_threads()

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """Generate the turn that follows ``ids``; concurrent requests are computed together.

        Raises:
            ConfigurationError: The prompt is empty, or stop strings were given without a tokenizer.
        """
        check_prompt(ids)
        if params.stop and self.tokenizer is None:
            raise ConfigurationError("Stop strings need a tokenizer: pass tokenizer= to TransformersEngine.")
        check_candidates(self, params.candidates)
        with self._lock:
            seed: Any = self._seeds.spawn(1)[0] if params.seed is None else params.seed
            request = Request(list(ids), params, np.random.default_rng(seed).random(params.max_tokens))
            self._waiting.append(request)
            self._begin()
        try:
            return await asyncio.wrap_future(request.future)
        finally:
            # If the caller was cancelled, stop generating.
            request.future.cancel()

    async def score(self, prompt_ids: Sequence[int], ids: Sequence[int]) -> list[float]:
        """Return the log-probability of each id in ``ids``, given the ids before it, at temperature 1; see ``Scores``.

        Raises:
            ConfigurationError: The prompt is empty.
        """
        if not prompt_ids:
            raise ConfigurationError(
                "The engine received an empty prompt: tokens can be scored only after at least one token."
            )
        if not ids:
            return []
        given = ScoreRequest(list(prompt_ids), list(ids))
        with self._lock:
            self._given.append(given)
            self._begin()
        try:
            return await asyncio.wrap_future(given.future)
        finally:
            given.future.cancel()

    def update_weights(self, version: int, weights: Any = None) -> None:
        """Record the version of the weights; if ``weights`` (a state dict) is given, load it between forward passes.

        Returns after loading. Requests in flight continue with the new weights and the cache of the old weights; later
        requests do not reuse caches of the old weights.
        """
        with self._lock:
            if not self._running:
                self._load(version, weights)
                return
            done: Future[None] = Future()
            self._updates.append((version, weights, done))
        done.result()

    @property
    def most_candidates(self) -> int:
        """Maximum value of ``SamplingParams.candidates``: the size of the vocabulary."""
        return int(self.model.config.get_text_config().vocab_size)

    def capacity(self) -> int:
        """Number of tokens that fit into the cache: ``max_tokens_in_cache``, or as many as fitted into free memory."""
        return self._batch.max_tokens

    def forget(self) -> None:
        """Free the caches that are kept between turns; a trainer calls this before it needs the memory."""
        with self._lock:
            if self._running:
                self._forgetting = True
            else:
                self._batch.forget()

    def stats(self) -> EngineStats:
        """Return the engine's load and counters."""
        batch = self._batch
        return EngineStats(
            running=len(batch),
            waiting=len(self._waiting),
            kv_usage=min(1.0, (batch.tokens + batch.pool.tokens) / max(1, batch.max_tokens)),
            preemptions=batch.preemptions,
            recomputed_tokens=batch.recomputed_tokens,
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
        # Requests in flight may have ended normally in spite of the cancellation.
        self.forget()

    def _begin(self) -> None:
        """Start the engine's computation unless it is running; called with the lock held."""
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
            with self._lock:
                if not (self._waiting or len(self._batch)):
                    continue  # the receiver of the scores may already train the module
            taken: list[Request] = []
            try:
                self._to_evaluation_mode()
                ended = self._step(taken)
            except BaseException as error:
                # Every waiting caller receives the error; afterwards the engine is empty and usable again.
                failed = {id(request): request for request in (*taken, *self._batch.live)}
                self._batch.forget()
                self._batch.clear()
                self._to_former_mode()
                for request in failed.values():
                    settle(request.future, error)
                continue
            if not len(self._batch):
                # Before the last results are delivered, since their receiver may immediately train the same modules.
                self._to_former_mode()
            for request, reason in ended:
                settle(request.future, request.result(reason))

    def _score_given(self) -> None:
        """Compute one pass of the waiting score requests; runs in the engine's thread."""
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
        """Start waiting requests, append them to ``taken``, and generate one token for every running request."""
        batch = self._batch
        if not len(batch):
            self._notice_new_weights()
            if not len(batch.pool):
                batch.max_tokens = self._room()
        batch.leave([request for request in batch.live if request.future.cancelled()])
        preempted = batch.shed()
        with self._lock:
            self._waiting.extendleft(reversed(preempted))
            taken += self._next_requests()
        for request in taken:
            if not request.ids:
                request.version = self._version
        batch.admit(taken)
        return batch.step() if len(batch) else []

    def _room(self) -> int:
        """Maximum number of tokens in the cache."""
        if self._max_tokens:
            return self._max_tokens
        config = self.model.config
        if not supports(config):
            return MOST_TOKENS
        free = self._cache_share * free_bytes(self.model.device)
        return min(MOST_TOKENS, max(1, int(free // token_bytes(config, self.model.dtype))))

    def _next_requests(self) -> list[Request]:
        """Remove from the queue the requests that may run now; return them in order of arrival."""
        taken: list[Request] = []
        if len(self._batch) and not self._batch.joins:
            return taken
        while self._waiting and len(self._batch) + len(taken) < self._max_rows:
            if self._waiting[0].future.cancelled():
                self._waiting.popleft()
                continue
            if not self._batch.has_room([*taken, self._waiting[0]]):
                break
            taken.append(self._waiting.popleft())
        return taken

    def _finish(self, request: Request) -> FinishReason | None:
        params = request.params
        if request.ids[-1] in params.stop_ids:
            return "stop"
        if params.stop and self.tokenizer is not None:
            # A stop string spans at most as many tokens as it has bytes.
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
        """Schedule the freeing of kept caches after ``idle_s`` idle seconds; called with the lock held."""
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
            self._former = [module for module in self.model.modules() if module.training]
            for module in self._former:
                module.training = False
            if self._threads is not None:
                torch.set_num_threads(self._threads)

    def _to_former_mode(self) -> None:
        if self._former is not None and self._threads is not None:
            torch.set_num_threads(self._usual_threads)
        for module in self._former or ():
            module.training = True
        self._former = None
