"""``PolicyEngine``: the engine of a run, kept up to date with the policy's weights.

Covered: engines that share the trainer's module, and engines with a copy of the weights: one in each process, or
servers for all of them, to which the first process sends the weights. Where they are sharded, all processes gather them
together, layer by layer. An error of one process is raised by all of them, so that none waits for another forever. Not
covered: several copies in one run that get different weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelerate.utils import gather_object
from peft import PeftModel
from transformers import PreTrainedTokenizerBase

from rstar2_env.core.errors import ConfigurationError, ServiceError
from rstar2_env.rollout import Engine, Generation, KeepsCaches, VllmEngine
from rstar2_env.rollout.engines.registry import ENGINES

from ....options.config import TrainConfig
from ....plan.device import GIB
from ..model import codec, dtype_of, processes
from ..sharding.choice import check_engine, sharding_of
from ..sharding.fsdp2 import hold, release
from .engine_cache import SIZED_BY, Cache, cache_for_vllm, room_on
from .handover import TOLERANCE, FloatArray, HandoverError, HandoverProbe, known_prompt, trainer_logprobs
from .whole_weights import is_sharded, whole_adapter, whole_weights

_ATTEMPTS = 3
"""How often weights are sent while servers are lost in the middle of it."""


class PolicyEngine:
    """The engine that plays a run's episodes.

    Args:
        config: Options of the run; they name the engine and its options.
        trl: The TRL trainer that holds the policy.
        tokenizer: The tokenizer of the policy.

    Attributes:
        shares_weights: Whether the engine computes with the trainer's own module.
        in_each_process: Whether each process has an engine of its own, with weights of its own or the trainer's.
        cache: How large the cache of a vLLM in this process was made, and why; ``None`` for other engines, and where
            the options say it.

    Raises:
        UnknownNameError: There is no engine of that name.
        ConfigurationError: An engine option does not fit, or the engine does not support this number of processes.
        MissingExtraError: A package that the engine needs is not installed.
    """

    def __init__(self, config: TrainConfig, trl: Any, tokenizer: PreTrainedTokenizerBase) -> None:
        kind = ENGINES.get(config.rollout.engine)
        self._trl, self.shares_weights = trl, kind.shares_weights
        self.in_each_process = kind.takes_model != "nothing"
        self._sends = self.in_each_process or processes().is_main_process
        self._last: int | None = None
        self._dtype = dtype_of(config.model)
        check_engine(config.rollout.engine, sharding_of(trl.accelerator.state), shares_weights=kind.shares_weights)
        options = dict(config.rollout.engine_options)
        self.cache: Cache | None = None
        if config.rollout.engine == "vllm":
            options.setdefault("dtype", str(dtype_of(config.model)).removeprefix("torch."))
            self.cache = self._cache(config, options)
            if self.cache is not None and self.cache.size is not None:
                options["kv_cache_gib"] = self.cache.size / GIB
        if options.get("scheduler") is not None:
            # Without a share each, the processes would give away the same caches.
            options.setdefault("shared_by", processes().num_processes)
        self.engine: Engine = kind.make(
            self._module(), tokenizer, max_rows=config.rollout.max_in_flight, seed=config.run.seed, options=options
        )
        self._takes = str(getattr(self.engine, "takes", "weights"))
        if self._takes == "adapter" and not isinstance(self._module(), PeftModel):
            self.engine.close()
            raise ConfigurationError(
                "transport='adapter' hands LoRA adapters over, and the policy has none: set lora_rank, or choose "
                "transport='folder' or 'group'."
            )
        chat = codec(config.model, tokenizer, self._module())
        tolerance = config.rollout.handover_tolerance or TOLERANCE[dtype_of(config.model)]
        self._probe = HandoverProbe(self.engine, known_prompt(chat), self._score, tolerance=tolerance)

    def update(self) -> None:
        """Give the engine the policy's current weights, and compare the two; does nothing when it has them already.

        Raises:
            HandoverError: The engine does not compute with these weights.
        """
        if self.shares_weights:
            hold(self._module())
        step = int(self._trl.state.global_step)
        if step == self._last:
            return
        if self.shares_weights:
            self.engine.update_weights(step)
        else:
            self._hand_over(step)
        self._compare(step)
        self._last = step

    def outdate(self) -> None:
        """Say that the weights have changed between two steps: the next ``update`` hands them over."""
        self._last = None

    def rest(self) -> None:
        """Free the engine's memory for the training step; the next ``update`` wakes an engine that was put to sleep."""
        if self.shares_weights:
            release(self._module())
        if isinstance(self.engine, KeepsCaches):
            # Caches computed with the old weights are useless after the step.
            self.engine.forget()
        if isinstance(self.engine, VllmEngine) and self.engine.sleeps:
            self.engine.sleep()
            self._last = None

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()

    def _cache(self, config: TrainConfig, options: Mapping[str, Any]) -> Cache | None:
        """The cache of a vLLM in this process; as large in each, and ``None`` where the options say how large."""
        if any(options.get(name) is not None for name in SIZED_BY):
            return None
        return cache_for_vllm(
            config,
            self._module(),
            options,
            room_on(self._trl.accelerator.device, self._gather),
            processes=processes().num_processes,
            sharding=self._trl.sharding,
        )

    def _hand_over(self, step: int) -> None:
        """Send the weights, again if servers were lost in the middle; returns on all processes at once.

        No process may send requests before the servers have the new weights.

        Raises:
            ServiceError: They could not be handed over.
        """
        for left in reversed(range(_ATTEMPTS)):
            error = self._attempt(step)
            again = isinstance(error, ServiceError) and bool(error.cause) and left > 0
            if all(self._gather(error is None)):
                if not self._sends:
                    # Not before: what is drawn meanwhile, in the middle of an episode, may be of the version before.
                    self.engine.update_weights(step)
                return
            if not all(self._gather(error is None or again)):
                self._raise_everywhere(error)

    def _attempt(self, step: int) -> Exception | None:
        """One attempt of this process; every process gathers every layer, also after an error of its own."""
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
        """Compare the engine with the trainer, and let every process know of a difference.

        An engine that shares the trainer's module cannot have other weights later: it is compared once, for its own
        computation.

        Raises:
            HandoverError: It does not compute with the policy's weights.
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
        """Raise the error of one process on all of them; returns where none has one, once all are here."""
        wrong = isinstance(error, HandoverError)
        met = self._gather(None if error is None else (f"{error if wrong else repr(error)}", wrong))
        if error is not None:
            raise error
        for rank, one in enumerate(met):
            if one is not None:
                said, wrong = one
                raise HandoverError(said) if wrong else ServiceError(f"Process {rank} failed to hand over: {said}")

    def _gather(self, value: Any) -> list[Any]:
        """One entry per process."""
        return gather_object([value]) if processes().num_processes > 1 else [value]

    def _score(self, prompt: list[int], ids: list[int]) -> FloatArray:
        return trainer_logprobs(self._module(), self._trl.accelerator.autocast, prompt, ids)

    def _module(self) -> Any:
        return self._trl.accelerator.unwrap_model(self._trl.model)
