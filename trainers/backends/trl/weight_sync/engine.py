"""``PolicyEngine``: the engine of a run, kept up to date with the policy's weights.

Covered: engines that share the trainer's module, and engines with a copy of the weights: one in each process, or
servers for all processes, to which the first process sends the weights. If the weights are sharded, all processes
gather them together, layer by layer. An error of one process is raised by all of them, so no process waits forever. Not
covered: copies with different weights in one run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from peft import PeftModel
from transformers import PreTrainedTokenizerBase

from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.core.row import FloatArray
from rstar2_env.rollout import Engine, Generation, KeepsCaches, VllmEngine
from rstar2_env.rollout.engines.registry import ENGINES

from ....options.config import TrainConfig
from ....plan.device import GIB
from ....plan.workload import SIZED_BY
from ..model import codec, dtype_of
from ..sharding.choice import check_engine, sharding_of
from ..sharding.fsdp2 import hold, release
from .engine_cache import CacheSize, cache_for_vllm, device_memory
from .handover_probe import EXPLAINED, TOLERANCE, HandoverError, HandoverProbe, known_prompt, trainer_logprobs
from .offload import OffloadedState
from .whole_weights import is_sharded, whole_adapter, whole_weights

_ATTEMPTS = 3
"""Maximum number of attempts at a weight sync; a new attempt is made if servers are lost during the sync."""


class PolicyEngine:
    """The engine that generates the turns of a run's episodes.

    Args:
        config: Options of the run; they name the engine and its options.
        trl: The TRL trainer that holds the policy.
        tokenizer: The tokenizer of the policy.

    Attributes:
        shares_weights: Whether the engine computes with the trainer's own module.
        in_each_process: Whether each process has its own engine, with a copy of the weights or the trainer's weights.
        explained: Largest mean distance, in nats, between the engine's and the trainer's log-probabilities that
            rounding in the run's precision can explain.
        cache: The cache size chosen for vLLM in this process, with the reason; ``None`` for other engines, and if an
            option sets the size.

    Raises:
        UnknownNameError: No engine has this name.
        ConfigurationError: An engine option is not valid, or the engine does not support this number of processes.
        MissingExtraError: A package that the engine needs is not installed.
    """

    def __init__(self, config: TrainConfig, trl: Any, tokenizer: PreTrainedTokenizerBase) -> None:
        kind = ENGINES.get(config.rollout.engine)
        self._trl, self.shares_weights = trl, kind.shares_weights
        self.in_each_process = kind.takes_model != "nothing"
        self._ranks = trl.ranks
        self._sends = self.in_each_process or not self._ranks.rank
        self._last: int | None = None
        self._dtype = dtype_of(config.model)
        check_engine(config.rollout.engine, sharding_of(trl.accelerator.state), shares_weights=kind.shares_weights)
        options = dict(config.rollout.engine_options)
        offloads = _offloads(config)
        self.cache: CacheSize | None = None
        if config.rollout.engine == "vllm":
            options.setdefault("dtype", str(dtype_of(config.model)).removeprefix("torch."))
            self.cache = self._cache(config, options)
            if self.cache is not None and self.cache.size is not None:
                options["kv_cache_gib"] = self.cache.size / GIB
            offloads = offloads or (self.cache is not None and self.cache.offloads)
        self._state = OffloadedState() if offloads else None
        self._out_s = 0.0
        if options.get("scheduler") is not None:
            # Each process may use only its share, since all of them assign episodes to the same caches.
            options.setdefault("shared_by", self._ranks.size)
        self.engine: Engine = kind.make(
            self._module(), tokenizer, max_rows=config.rollout.max_in_flight, seed=config.run.seed, options=options
        )
        self._takes = str(getattr(self.engine, "takes", "weights"))
        if self._takes == "adapter" and not isinstance(self._module(), PeftModel):
            self.engine.close()
            raise ConfigurationError(
                "transport='adapter' sends the LoRA adapter to the engine, but all weights of the model "
                "are trained: set lora_rank, or choose transport='folder' or 'group'."
            )
        chat = codec(config.model, tokenizer, self._module())
        self.explained = EXPLAINED[self._dtype]
        tolerance = config.rollout.handover_tolerance or TOLERANCE[self._dtype]
        self._probe = HandoverProbe(self.engine, known_prompt(chat), self._score, tolerance=tolerance)
        if offloads:
            self.free_memory()  # a resumed run reads the optimizer's state onto the device before it plays

    def update(self) -> None:
        """Sync the policy's weights to the engine and check the result; does nothing if the engine already has them.

        Raises:
            HandoverError: The engine does not compute with these weights.
        """
        if self.shares_weights:
            hold(self._module())
        step = int(self._trl.state.global_step)
        if step == self._last:
            return
        self._offload()
        if self.shares_weights:
            self.engine.update_weights(step)
        else:
            self._hand_over(step)
        self._compare(step)
        self._last = step

    def mark_stale(self) -> None:
        """Record that the weights have changed between two steps, so that the next ``update`` syncs them."""
        self._last = None

    def free_memory(self) -> None:
        """Free the engine's memory for the training step; the next ``update`` wakes a sleeping engine."""
        if self.shares_weights:
            release(self._module())
        if isinstance(self.engine, KeepsCaches):
            # Caches computed with the old weights are useless after the step.
            self.engine.forget()
        if isinstance(self.engine, VllmEngine) and self.engine.sleeps:
            self.engine.sleep()
            self._last = None
        if self._state is not None:
            begun = time.perf_counter()
            if self._state.to_device():
                self._trl.sums.add("seconds/offload", self._out_s + time.perf_counter() - begun)
            self._last = None  # so that the next update moves the state again

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()

    def _offload(self) -> None:
        """Move the optimizer's state to host memory before the engine takes the device's memory."""
        if self._state is None:
            return
        begun, wrapped = time.perf_counter(), self._trl.optimizer
        error: Exception | None = None
        moved = 0
        try:
            moved = self._state.to_host(getattr(wrapped, "optimizer", wrapped))
        except Exception as failed:
            error = failed
        self._raise_everywhere(error)  # the weight sync that follows waits for every process
        if moved:
            self._out_s = time.perf_counter() - begun

    def _cache(self, config: TrainConfig, options: Mapping[str, Any]) -> CacheSize | None:
        """Choose the cache size of vLLM, the same in each process; ``None`` if an option sets it."""
        if any(options.get(name) is not None for name in SIZED_BY):
            return None
        return cache_for_vllm(
            config,
            self._module(),
            options,
            device_memory(self._trl.accelerator.device, self._gather),
            processes=self._ranks.size,
            sharding=self._trl.sharding,
        )

    def _hand_over(self, step: int) -> None:
        """Send the weights, and retry if servers are lost meanwhile; return only when all processes are finished.

        No process may send requests before the servers have the new weights.

        Raises:
            ServiceError: The weight sync failed.
        """
        for left in reversed(range(_ATTEMPTS)):
            error = self._attempt(step)
            again = isinstance(error, ServiceError) and bool(error.cause) and left > 0
            if all(self._gather(error is None)):
                if not self._sends:
                    # Not earlier: tokens sampled meanwhile, in running episodes, may still be of the old version.
                    self.engine.update_weights(step)
                return
            if not all(self._gather(error is None or again)):
                self._raise_everywhere(error)

    def _attempt(self, step: int) -> Exception | None:
        """Try once to send the weights; return the error of this process, if any.

        Every process gathers every layer of sharded weights, even after an error.
        """
        policy = self._module()
        sent: Any
        if self._takes == "adapter":
            sent = whole_adapter(policy, dtype=self._dtype)
            walked = sent.tensors
        else:
            sent = walked = whole_weights(policy, dtype=self._dtype)
        error: Exception | None = None
        try:
            if self._sends:
                self.engine.update_weights(step, sent)
        except Exception as failed:
            error = failed
        try:
            for _ in walked if is_sharded(policy) else ():
                pass
        except Exception as failed:
            error = error or failed
        return error

    def _compare(self, step: int) -> None:
        """Compare the engine with the trainer; if they differ, every process raises the error.

        An engine that shares the trainer's module always has the trainer's weights: it is compared only once, to check
        its computation.

        Raises:
            HandoverError: The engine does not compute with the policy's weights.
        """
        if self.shares_weights and self._last is not None:
            return
        asked: list[Generation] = []
        error: Exception | None = None
        try:
            if self._sends:
                asked = self._probe.ask()
        except Exception as failed:
            error = failed
        if not self.in_each_process and is_sharded(self._module()):
            asked = self._gather(asked)[0]
        try:
            self._probe.compare(step, asked)
        except HandoverError as wrong:
            error = wrong
        self._raise_everywhere(error)

    def _raise_everywhere(self, error: Exception | None) -> None:
        """Raise one process's error on all processes; without an error, return once all processes have called it."""
        wrong = isinstance(error, HandoverError)
        met = self._gather(None if error is None else (f"{error if wrong else repr(error)}", wrong))
        if error is not None:
            raise error
        for rank, one in enumerate(met):
            if one is not None:
                text, wrong = one
                raise (
                    HandoverError(text)
                    if wrong
                    else ServiceError(f"Process {rank} failed in the weight sync with the engine: {text}")
                )

    def _gather(self, value: Any) -> list[Any]:
        """Return the values that all processes passed to this call."""
        gathered: list[Any] = self._ranks.gather(value)
        return gathered

    def _score(self, prompt: list[int], ids: list[int]) -> FloatArray:
        return trainer_logprobs(self._module(), self._trl.accelerator.autocast, prompt, ids)

    def _module(self) -> Any:
        return self._trl.accelerator.unwrap_model(self._trl.model)


def _offloads(config: TrainConfig) -> bool:
    """Return whether the options request offloading the optimizer's state to host memory.

    Raises:
        ConfigurationError: The options request offloading, but no engine would use the freed memory.
    """
    if config.optim.offload_state and config.rollout.engine != "vllm":
        raise ConfigurationError(
            "optim.offload_state=true frees memory for a vLLM engine in the training processes, but "
            f"engine={config.rollout.engine!r} does not need it: set engine='vllm' with engine.sleep=true, or "
            "remove the option.",
            option="optim.offload_state",
        )
    return bool(config.optim.offload_state)
