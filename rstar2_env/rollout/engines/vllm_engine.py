"""``VllmEngine``: vLLM in this process, stepped explicitly: continuous batching, paged attention, prefix caching.

Covered: requests from any event loop, which join as they arrive; new weights from a module or a state dict, passed in
memory between two steps; a prefix cache that is kept between turns, but not reused after a weight sync;
log-probabilities as ``Generation`` defines them, also with top-p and top-k (see ``vllm_worker``). It runs on CPU, CUDA
or ROCm, depending on the installed vLLM. Not covered: more than one device (use ``VllmServerEngine``), speculative
decoding, images.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout.engine import (
    EngineStats,
    FinishReason,
    Generation,
    SamplingParams,
    check_candidates,
    check_prompt,
    settle,
)
from rstar2_env.rollout.engines.checkpoint_weights import check_names, named_weights
from rstar2_env.rollout.engines.vllm_parameters import best_of, check_temperature, request_fields, seed_of
from rstar2_env.rollout.engines.vllm_setup import VllmCounters, in_run, is_whole, runs_group_kept, same_draws, start
from rstar2_env.rollout.engines.vllm_worker import keep_full_logprobs


@dataclass(eq=False)
class _Request:
    key: str
    prompt: list[int]
    params: SamplingParams
    seed: int
    future: Future[Generation] = field(default_factory=Future)
    version: int | None = None
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    candidates: list[list[float]] = field(default_factory=list)


class VllmEngine:
    """An inference engine that runs vLLM in this process.

    The engine computes in a thread of its own while there are requests. Requests may come from any thread and any event
    loop. A process can have one such engine at a time.

    Args:
        model: Folder or Hub name of a model; or a module, whose weights are copied now and by each ``update_weights``,
            with LoRA adapters merged into the copy.
        tokenizer: Needed for stop strings if ``model`` is a module; otherwise the model's own is used.
        max_rows: Maximum number of running requests; further requests wait in order of arrival.
        max_model_len: Maximum number of tokens of prompt and turn together; ``None`` means the model's own limit.
        kv_cache_gib: Size of the KV cache in GiB. ``None`` means 1 on a CPU; elsewhere, ``gpu_memory_utilization``
            determines the size. If the user sets neither of the two options, a trainer chooses the size from the memory
            that training does not need.
        gpu_memory_utilization: Fraction of the device's memory for vLLM's weights and cache together; the trainer needs
            the rest. ``None`` means 0.4, unless ``kv_cache_gib`` is set.
        sleep: Enable the method ``sleep``, which frees the device's memory between rollouts (vLLM's sleep mode; not on
            a CPU).
        seed: Seeds the draws of requests without a seed of their own.
        **vllm_options: Passed to ``vllm.EngineArgs`` (``dtype``, ``block_size``, ``quantization``, ...).

    Raises:
        MissingExtraError: vLLM is not installed.
        ConfigurationError: vLLM refuses the options, or this process is part of a distributed run that torchrun did not
            start.
    """

    def __init__(
        self,
        model: str | Path | nn.Module,
        tokenizer: PreTrainedTokenizerBase | None = None,
        *,
        max_rows: int = 256,
        max_model_len: int | None = None,
        kv_cache_gib: float | None = None,
        gpu_memory_utilization: float | None = None,
        sleep: bool = False,
        seed: int = 0,
        **vllm_options: Any,
    ) -> None:
        options = {"enable_sleep_mode": sleep, **vllm_options}
        self._tally = VllmCounters()
        self._seeds = np.random.SeedSequence(seed)
        self._keys = itertools.count()
        # The lock guards the queues of requests and updates; only the engine's thread accesses the rest.
        self._lock = threading.Lock()
        self._fresh: list[_Request] = []
        self._updates: list[tuple[int, Any, Future[None]]] = []
        self._running = self._closed = self._asleep = False
        self._version = self._last_version = 0
        self._overdue_steps = 0
        self._in_run = in_run()
        self._live: dict[str, _Request] = {}
        self._names: frozenset[str] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rstar2-vllm")
        # vLLM and the device context belong to the thread that created them.
        try:
            self._core: Any = self._thread.submit(
                start,
                model,
                tokenizer,
                self._tally,
                max_rows=max_rows,
                max_model_len=max_model_len,
                kv_cache_gib=kv_cache_gib,
                utilization=gpu_memory_utilization,
                options=options,
            ).result()
        except BaseException:
            self._thread.shutdown(wait=True)
            raise
        self._config = self._core.vllm_config
        self.sleeps = sleep
        self._full_logprobs = self._on_thread(self._core.collective_rpc, keep_full_logprobs)[0]
        if isinstance(model, nn.Module) and is_whole(model):
            self.update_weights(0, model)

    @property
    def max_model_len(self) -> int:
        """Maximum number of tokens of prompt and turn together."""
        return int(self._config.model_config.max_model_len)

    @property
    def most_candidates(self) -> int:
        """Maximum value of ``SamplingParams.candidates``: vLLM's ``max_logprobs``."""
        most = int(self._config.model_config.max_logprobs)
        return int(self._config.model_config.get_vocab_size()) if most < 0 else most

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """Generate the turn that follows ``ids``; concurrent requests are computed together.

        A turn that reaches ``max_model_len`` ends there, with the finish reason ``"length"``.

        Raises:
            ConfigurationError: The prompt is empty, leaves no room for a token, or contains an unknown token; or vLLM
                cannot report log-probabilities as ``Generation`` defines them for these parameters; or the engine is
                closed or asleep.
        """
        self._check(ids, params)
        with self._lock:
            if self._closed or self._asleep:
                raise ConfigurationError(
                    "The engine is closed: create a new one."
                    if self._closed
                    else "The engine is asleep: call update_weights with weights to wake it."
                )
            request = _Request(str(next(self._keys)), list(ids), params, seed_of(params, self._seeds))
            self._fresh.append(request)
            self._wake_thread()
        try:
            return await asyncio.wrap_future(request.future)
        finally:
            # If the caller was cancelled, stop generating.
            request.future.cancel()

    def update_weights(self, version: int, weights: Any = None) -> None:
        """Record the version of the weights; if ``weights`` is given, load it between two steps.

        Returns after loading. Requests in flight continue with the new weights and the cache of the old weights; later
        requests do not reuse a prefix cache of the old weights. A sleeping engine wakes up.

        Args:
            version: Reported by every generation whose first token is sampled from now on.
            weights: A module, or the contents of its ``state_dict``: a mapping or an iterable of names and tensors,
                with tied weights under each of their names.

        Raises:
            ConfigurationError: The names differ from the names of the current weights; or the engine is closed, or
                asleep and received no weights.
        """
        done: Future[None] = Future()
        with self._lock:
            if self._closed:
                raise ConfigurationError("The engine is closed: create a new one.")
            self._updates.append((version, weights, done))
            self._wake_thread()
        done.result()

    def sleep(self) -> None:
        """Free the device's memory until the next ``update_weights``; do nothing unless the engine has ``sleep=True``.

        Waits for requests in flight.

        Raises:
            ConfigurationError: New requests arrived meanwhile; or the engine is closed.
        """
        if not self.sleeps:
            return
        if self._closed:
            raise ConfigurationError("The engine is closed: create a new one.")
        # In the engine's thread, after all its other work.
        self._on_thread(self._fall_asleep)

    def _fall_asleep(self) -> None:
        with self._lock:
            if self._fresh:
                raise ConfigurationError(
                    "The engine cannot release its memory (sleep) while requests are waiting: let them end first."
                )
            self._asleep = True
        # Level 2 drops the weights too: new ones are loaded before the next request.
        self._core.sleep(2)

    def capacity(self) -> int:
        """Number of tokens that fit into vLLM's KV cache."""
        cache = self._config.cache_config
        return int(getattr(cache, "kv_cache_size_tokens", None) or cache.num_gpu_blocks * cache.block_size)

    def stats(self) -> EngineStats:
        """Return the load of vLLM, and its counters since the start."""
        return self._tally.stats

    def close(self) -> None:
        """Cancel requests in flight and free everything that vLLM holds."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for request in [*self._fresh, *self._live.values()]:
                request.future.cancel()
        self._thread.submit(self._shut_down).result()
        self._thread.shutdown(wait=True)

    def _check(self, ids: Sequence[int], params: SamplingParams) -> None:
        check_prompt(ids, self.max_model_len)
        vocabulary = int(self._config.model_config.get_vocab_size())
        if not 0 <= min(ids) <= max(ids) < vocabulary:
            # vLLM checks this only if it has a tokenizer; otherwise all requests in flight would fail.
            odd = min(ids) if min(ids) < 0 else max(ids)
            raise ConfigurationError(
                f"The prompt contains the token id {odd}, but the model has only {vocabulary} tokens: use the "
                "tokenizer of this model."
            )
        if params.stop and self._core.tokenizer is None:
            raise ConfigurationError("Stop strings need a tokenizer: pass tokenizer= to VllmEngine.")
        check_temperature(params.temperature)
        check_candidates(self, params.candidates)
        if (params.top_k or params.top_p < 1) and not self._full_logprobs:
            raise ConfigurationError(
                "With top_p or top_k this build of vLLM normalizes log-probabilities over the remaining tokens, not "
                "over all: sample with top_p=1 and top_k=0, or set VLLM_USE_V2_MODEL_RUNNER=0 before the engine starts."
            )

    def _wake_thread(self) -> None:
        if not self._running:
            self._running = True
            self._thread.submit(self._run)

    def _on_thread(self, call: Any, *args: Any) -> Any:
        return self._thread.submit(call, *args).result()

    def _run(self) -> None:
        """Compute until no requests are left; runs in the engine's thread."""
        while True:
            with self._lock:
                updates, self._updates = self._updates, []
                fresh, self._fresh = self._fresh, []
                self._running = bool(updates or fresh or self._live)
                if not self._running:
                    return
            self._apply(updates)
            for request, result in self._advance(fresh):
                settle(request.future, result)

    def _apply(self, updates: Iterable[tuple[int, Any, Future[None]]]) -> None:
        for version, weights, done in updates:
            try:
                self._load(weights)
                self._last_version, self._version = self._version, version
                # With asynchronous scheduling one step with the old weights is already running.
                asynchronous = bool(self._config.scheduler_config.async_scheduling)
                self._overdue_steps = int(asynchronous and bool(self._live))
                done.set_result(None)
            except BaseException as error:
                done.set_exception(error)

    def _load(self, weights: Any) -> None:
        if weights is None:
            if self._asleep:
                raise ConfigurationError(
                    "The engine lost its weights when it released its memory (sleep): pass the weights to "
                    "update_weights."
                )
            return
        if isinstance(weights, Mapping):  # check its names before anything is loaded
            check_names(weights.keys(), self._names)
        if self._asleep:
            if torch.cuda.is_available():
                torch.cuda.empty_cache()  # vLLM cannot use memory that torch still reserves
            self._core.wake_up(["weights"])
        names: set[str] = set()

        def with_names() -> Iterator[tuple[str, torch.Tensor]]:
            # One at a time, so that merged and cast copies of all weights never exist together.
            for name, tensor in named_weights(weights):
                names.add(name)
                yield name, tensor

        self._core.collective_rpc("reload_weights", kwargs={"weights_iterator": with_names()})
        check_names(names, self._names)
        self._names = frozenset(names)
        if self._asleep:
            self._core.wake_up(["kv_cache"])
            self._asleep = False

    def _advance(self, fresh: Iterable[_Request]) -> list[tuple[_Request, Generation]]:
        """Add new requests, drop cancelled ones and compute one step; return the ended requests."""
        ended: list[tuple[_Request, Generation]] = []
        for request in fresh:
            if request.future.cancelled():
                continue
            try:
                self._core.add_request(request.key, self._prompt(request), self._params(request))
                self._live[request.key] = request
            except Exception as error:
                settle(request.future, error)
        unwanted = [request for request in self._live.values() if request.future.cancelled()]
        self._forget(unwanted)
        if not self._live:
            return ended
        try:
            with same_draws():
                outputs = self._core.step()
            version = self._last_version if self._overdue_steps else self._version
            self._overdue_steps = 0
            for output in outputs:
                live = self._live.get(output.request_id)
                if live is not None and _take(live, output, version):
                    ended.append((live, _result(live, output.outputs[0].finish_reason)))
                    del self._live[live.key]
        except BaseException as error:
            # Every waiting caller receives the error; afterwards the engine is empty, and usable if vLLM still is.
            failed = list(self._live.values())
            for request in failed:
                settle(request.future, error)
            self._forget(failed)
        return ended

    def _forget(self, requests: Sequence[_Request]) -> None:
        if requests:
            self._core.abort_request([request.key for request in requests])
        for request in requests:
            self._live.pop(request.key, None)

    def _prompt(self, request: _Request) -> Any:
        from vllm.inputs import tokens_input

        # The salt separates the prefix caches of different versions of the weights.
        return tokens_input(request.prompt, cache_salt=f"version {self._version}")

    def _params(self, request: _Request) -> Any:
        import vllm

        params = request.params
        return vllm.SamplingParams(
            **request_fields(params, request.seed, self.max_model_len - len(request.prompt)),
            detokenize=bool(params.stop),
            output_kind=vllm.sampling_params.RequestOutputKind.DELTA,
        )

    def _shut_down(self) -> None:
        self._forget(list(self._live.values()))
        with runs_group_kept(self._in_run):
            self._core.engine_core.shutdown()
        del self._core


def _take(request: _Request, output: Any, version: int) -> bool:
    """Add new tokens to a request; return whether it has ended."""
    new = output.outputs[0]
    if request.version is None:
        request.version = version
    request.candidates += best_of(new.logprobs, request.params, begun=len(request.ids))
    request.ids += new.token_ids
    request.logprobs += [float(entry[token].logprob) for token, entry in zip(new.token_ids, new.logprobs, strict=True)]
    return bool(output.finished)


def _result(request: _Request, reason: str | None) -> Generation:
    if any(logprob != logprob for logprob in request.logprobs):
        raise FloatingPointError(
            "The model computes values that are not numbers (NaN), so its weights may have diverged: in "
            "training, continue from an earlier checkpoint with a lower learning rate."
        )
    if reason not in ("stop", "length"):
        raise RuntimeError(f"vLLM aborted a request: {reason}.")
    assert request.version is not None  # the last output contains at least one token
    kind: FinishReason = "stop" if reason == "stop" else "length"
    return Generation(request.ids, request.logprobs, kind, request.version, request.candidates)
