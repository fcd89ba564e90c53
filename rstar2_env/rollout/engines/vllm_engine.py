"""``VllmEngine``: vLLM in this process, stepped by hand: continuous batching, paged attention, a cache of prefixes.

Covered: requests from any event loop, which join as they come; new weights from a module or a state dict, handed over
in memory between two steps; a cache of prefixes that outlives a turn and never mixes weights; log-probabilities as the
protocol promises them, with top-p and top-k as well (see ``vllm_worker``). CPU, CUDA and ROCm, whatever the installed
vLLM was built for. Not covered: more than one device (``VllmServerEngine`` does), speculative decoding, images.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout.engine import EngineStats, Generation, SamplingParams, settle
from rstar2_env.rollout.engines.vllm_setup import Tally, same_draws, start
from rstar2_env.rollout.engines.vllm_worker import keep_full_logprobs
from rstar2_env.rollout.engines.weights import named_weights

MAX_TEMPERATURE, MIN_TEMPERATURE = 2.0, 0.01
"""vLLM refuses higher temperatures, and silently raises lower ones (0, greedy, aside)."""

SEED_BITS = 63
"""vLLM takes seeds as signed numbers of 64 bits."""


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


class VllmEngine:
    """Generates with vLLM in this process.

    One thread of the engine's own computes, as long as there is anything to do; requests may come from any thread and
    any event loop. A process holds one such engine at a time.

    Args:
        model: Folder or hub name of a model; or a module, whose weights are handed over at once, and again with
            ``update_weights``.
        tokenizer: Needed for stop strings where ``model`` is a module; else the model's own is used.
        max_rows: Requests that run at once; more wait, first come, first served.
        max_model_len: Most tokens of a prompt and its turn together; ``None`` is the model's own limit.
        kv_cache_gib: Size of the KV cache in GiB; ``None`` is what ``gpu_memory_utilization`` leaves, and 1 on a CPU.
        gpu_memory_utilization: Share of the device that vLLM may use, weights and cache together. The trainer needs the
            rest.
        sleep: Let ``sleep`` give the device's memory back between rollouts (vLLM's sleep mode; not on a CPU).
        seed: Seeds the draws of requests that bring no seed.
        **vllm_options: Passed to ``vllm.EngineArgs`` (``dtype``, ``block_size``, ``quantization``, ...).

    Raises:
        MissingExtraError: vLLM is not installed.
        ConfigurationError: vLLM refuses the options, or this process is part of a distributed run.
    """

    def __init__(
        self,
        model: str | Path | PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | None = None,
        *,
        max_rows: int = 256,
        max_model_len: int | None = None,
        kv_cache_gib: float | None = None,
        gpu_memory_utilization: float = 0.4,
        sleep: bool = False,
        seed: int = 0,
        **vllm_options: Any,
    ) -> None:
        options = {"gpu_memory_utilization": gpu_memory_utilization, "enable_sleep_mode": sleep, **vllm_options}
        self._tally = Tally()
        self._seeds = np.random.SeedSequence(seed)
        self._keys = itertools.count()
        # The lock guards what requests and updates come in by; the engine's thread alone touches the rest.
        self._lock = threading.Lock()
        self._fresh: list[_Request] = []
        self._updates: list[tuple[int, Any, Future[None]]] = []
        self._running = self._closed = self._asleep = False
        self._version = self._last_version = 0
        self._overdue_steps = 0
        self._live: dict[str, _Request] = {}
        self._names: frozenset[str] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rstar2-vllm")
        # vLLM, and the device context, belong to the thread that made them.
        try:
            self._core: Any = self._thread.submit(
                start,
                model,
                tokenizer,
                self._tally,
                max_rows=max_rows,
                max_model_len=max_model_len,
                kv_cache_gib=kv_cache_gib,
                options=options,
            ).result()
        except BaseException:
            self._thread.shutdown(wait=True)
            raise
        self._config = self._core.vllm_config
        self.sleeps = sleep
        self._full_logprobs = self._on_thread(self._core.collective_rpc, keep_full_logprobs)[0]
        if isinstance(model, PreTrainedModel):
            self.update_weights(0, model)

    @property
    def max_model_len(self) -> int:
        """Most tokens of a prompt and its turn together."""
        return int(self._config.model_config.max_model_len)

    async def generate(self, ids: Sequence[int], params: SamplingParams) -> Generation:
        """Continue ``ids``; requests in flight are computed together.

        A turn that reaches ``max_model_len`` ends there, with ``"length"``.

        Raises:
            ConfigurationError: The prompt is empty, leaves no room for a token, or has one that the model does not
                know; or vLLM cannot keep what the parameters promise; or the engine is closed or asleep.
        """
        self._check(ids, params)
        with self._lock:
            if self._closed or self._asleep:
                what = "closed" if self._closed else "asleep; give it weights with update_weights, which wakes it"
                raise ConfigurationError(f"The engine is {what}.")
            seed = params.seed
            if seed is None:
                seed = int(self._seeds.spawn(1)[0].generate_state(1, np.uint64)[0])
            request = _Request(str(next(self._keys)), list(ids), params, seed % (1 << SEED_BITS))
            self._fresh.append(request)
            self._wake_thread()
        try:
            return await asyncio.wrap_future(request.future)
        finally:
            # Whoever stops waiting does not want the rest.
            request.future.cancel()

    def update_weights(self, version: int, weights: Any = None) -> None:
        """Note the version; with ``weights``, load them between two steps.

        Returns once they are in. Requests in flight go on with the new weights and the cache of the old ones; later
        ones find nothing of the old weights in the cache of prefixes. An engine that sleeps wakes up.

        Args:
            version: Given to every generation whose first token is drawn from now on.
            weights: A module, or what its ``state_dict`` has: a mapping or an iterable of names and tensors, tied ones
                under both names.

        Raises:
            ConfigurationError: The names are not those of the weights before; or the engine is closed, or slept and got
                no weights.
        """
        done: Future[None] = Future()
        with self._lock:
            if self._closed:
                raise ConfigurationError("The engine is closed.")
            self._updates.append((version, weights, done))
            self._wake_thread()
        done.result()

    def sleep(self) -> None:
        """Give the device's memory back until the next ``update_weights``; without ``sleep=True`` nothing happens.

        Waits for requests in flight.

        Raises:
            ConfigurationError: New requests came meanwhile; or the engine is closed.
        """
        if not self.sleeps:
            return
        if self._closed:
            raise ConfigurationError("The engine is closed.")
        # In the engine's thread, after everything that it has to do.
        self._on_thread(self._fall_asleep)

    def _fall_asleep(self) -> None:
        with self._lock:
            if self._fresh:
                raise ConfigurationError("The engine cannot sleep while requests come in.")
            self._asleep = True
        # Level 2 drops the weights as well: new ones come before the next request.
        self._core.sleep(2)

    def capacity(self) -> int:
        """Tokens that fit into vLLM's KV cache at once."""
        cache = self._config.cache_config
        return int(getattr(cache, "kv_cache_size_tokens", None) or cache.num_gpu_blocks * cache.block_size)

    def stats(self) -> EngineStats:
        """What vLLM is doing and has done since the start."""
        return self._tally.stats

    def close(self) -> None:
        """Cancel what is in flight, and give everything back that vLLM holds."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for request in [*self._fresh, *self._live.values()]:
                request.future.cancel()
        self._thread.submit(self._shut_down).result()
        self._thread.shutdown(wait=True)

    def _check(self, ids: Sequence[int], params: SamplingParams) -> None:
        if not ids:
            raise ConfigurationError("An engine cannot continue an empty prompt.")
        if len(ids) >= self.max_model_len:
            raise ConfigurationError(
                f"The conversation has {len(ids)} tokens and the engine takes {self.max_model_len}, its own turn "
                "included: raise max_model_len, or lower the budget of an episode."
            )
        vocabulary = int(self._config.model_config.get_vocab_size())
        if not 0 <= min(ids) <= max(ids) < vocabulary:
            # vLLM looks only where it has a tokenizer, and else fails with everything that is in flight.
            odd = min(ids) if min(ids) < 0 else max(ids)
            raise ConfigurationError(f"The model knows {vocabulary} tokens, and the prompt has token {odd}.")
        if params.stop and self._core.tokenizer is None:
            raise ConfigurationError("Stop strings need a tokenizer: pass tokenizer= to VllmEngine.")
        check_temperature(params.temperature)
        if (params.top_k or params.top_p < 1) and not self._full_logprobs:
            raise ConfigurationError(
                "With top_p or top_k this build of vLLM reports log-probabilities of the tokens that are left, and not "
                "of all: sample with top_p=1 and top_k=0, or set VLLM_USE_V2_MODEL_RUNNER=0 before the engine starts."
            )

    def _wake_thread(self) -> None:
        if not self._running:
            self._running = True
            self._thread.submit(self._run)

    def _on_thread(self, call: Any, *args: Any) -> Any:
        return self._thread.submit(call, *args).result()

    def _run(self) -> None:
        """Compute until there is nothing left to do; runs in the engine's thread."""
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
                # With asynchronous scheduling one step is under way already, with the weights from before.
                asynchronous = bool(self._config.scheduler_config.async_scheduling)
                self._overdue_steps = int(asynchronous and bool(self._live))
                done.set_result(None)
            except BaseException as error:
                done.set_exception(error)

    def _load(self, weights: Any) -> None:
        if weights is None:
            if self._asleep:
                raise ConfigurationError("The engine has slept, which dropped its weights: give it new ones.")
            return
        items = list(named_weights(weights))
        names = frozenset(name for name, _ in items)
        if self._names is not None and names != self._names:
            odd = sorted(names ^ self._names)
            raise ConfigurationError(
                f"The weights are not those of this model's state_dict; {len(odd)} names are missing or unknown, for "
                f"example {odd[0]!r}."
            )
        if self._asleep:
            self._core.wake_up(["weights"])
        self._core.collective_rpc("reload_weights", kwargs={"weights_iterator": iter(items)})
        self._names = names
        if self._asleep:
            self._core.wake_up(["kv_cache"])
            self._asleep = False

    def _advance(self, fresh: Iterable[_Request]) -> list[tuple[_Request, Generation]]:
        """Take in new requests, drop unwanted ones, compute one step; returns what ended."""
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
            # Whoever waits must hear of it; afterwards the engine is empty, and usable if vLLM still is.
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

        # The salt keeps what other weights computed out of the way of this version's requests.
        return tokens_input(request.prompt, cache_salt=f"version {self._version}")

    def _params(self, request: _Request) -> Any:
        import vllm

        params = request.params
        return vllm.SamplingParams(
            max_tokens=min(params.max_tokens, self.max_model_len - len(request.prompt)),
            temperature=params.temperature,
            top_p=params.top_p,
            top_k=params.top_k,
            seed=request.seed,
            stop_token_ids=list(params.stop_ids),
            stop=list(params.stop) or None,
            # Only the ids asked for end a turn, whatever the model's own configuration says.
            ignore_eos=True,
            include_stop_str_in_output=True,
            detokenize=bool(params.stop),
            skip_special_tokens=False,
            spaces_between_special_tokens=False,
            logprobs=0,
            output_kind=vllm.sampling_params.RequestOutputKind.DELTA,
        )

    def _shut_down(self) -> None:
        self._forget(list(self._live.values()))
        self._core.engine_core.shutdown()
        del self._core


def check_temperature(temperature: float) -> None:
    """Refuse a temperature that vLLM would change or reject.

    Raises:
        ConfigurationError: It is above 2, or between 0 and 0.01.
    """
    if temperature > MAX_TEMPERATURE or 0 < temperature < MIN_TEMPERATURE:
        raise ConfigurationError(
            f"vLLM samples at temperatures from {MIN_TEMPERATURE} to {MAX_TEMPERATURE}, and greedily at 0; not at "
            f"{temperature}."
        )


def _take(request: _Request, output: Any, version: int) -> bool:
    """Add new tokens to a request; returns whether it has ended."""
    new = output.outputs[0]
    if request.version is None:
        request.version = version
    request.ids += new.token_ids
    request.logprobs += [float(entry[token].logprob) for token, entry in zip(new.token_ids, new.logprobs, strict=True)]
    return bool(output.finished)


def _result(request: _Request, reason: str | None) -> Generation:
    if any(logprob != logprob for logprob in request.logprobs):
        raise FloatingPointError("The model's logits are not numbers; its weights may have diverged.")
    if reason not in ("stop", "length"):
        raise RuntimeError(f"vLLM ended a request by itself: {reason}.")
    assert request.version is not None  # the last output holds at least one token
    return Generation(request.ids, request.logprobs, "stop" if reason == "stop" else "length", request.version)
