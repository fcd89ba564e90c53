"""Starts vLLM inside this process, and keeps what it does to the process to itself.

vLLM expects to own its process: it seeds every random generator, sets environment variables, replaces
``torch.set_num_threads`` on a CPU, and logs a lot. A trainer lives here too, so all of that is put back once the engine
stands. Covered: one device; a module's configuration, whose weights come later. Not covered: tensor, pipeline and data
parallelism, which need processes of their own: use servers for them.
"""

from __future__ import annotations

import logging
import os
import random
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rstar2_env.core.errors import ConfigurationError, MissingExtraError
from rstar2_env.rollout.engine import EngineStats

_ENVIRONMENT = {
    # The engine in this very process: only there can weights be handed over as they are.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
}
_DEFAULTS = {
    # Else this process, the trainer's computing included, is bound to the cores that vLLM chooses.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}
_CPU_CACHE_GIB = 1.0


class Tally:
    """Counts what vLLM reports after every step; one of its stat loggers."""

    def __init__(self) -> None:
        self.stats = EngineStats()

    def __call__(self, vllm_config: Any, engine_index: int = 0) -> Tally:
        """Return the logger, for which vLLM asks a factory: this is both."""
        return self

    def record(self, scheduler_stats: Any, iteration_stats: Any, *_: Any, **__: Any) -> None:
        """Add one step."""
        old = self.stats
        running, waiting, usage, recomputed = old.running, old.waiting, old.kv_usage, old.recomputed_tokens or 0
        if scheduler_stats is not None:
            running, waiting = scheduler_stats.num_running_reqs, scheduler_stats.num_waiting_reqs
            usage = scheduler_stats.kv_cache_usage
            cache = scheduler_stats.prefix_cache_stats
            if cache is not None:
                recomputed += cache.preempted_queries - cache.preempted_hits
        preempted = prompt = cached = generated = 0
        if iteration_stats is not None:
            preempted, generated = iteration_stats.num_preempted_reqs, iteration_stats.num_generation_tokens
            prompt = iteration_stats.num_prompt_tokens
            cached = iteration_stats.prompt_token_stats.cached_tokens
        self.stats = EngineStats(
            running=running,
            waiting=waiting,
            kv_usage=usage,
            preemptions=old.preemptions + preempted,
            recomputed_tokens=recomputed,
            prompt_tokens=old.prompt_tokens + prompt,
            cached_tokens=old.cached_tokens + cached,
            generated_tokens=old.generated_tokens + generated,
        )

    def log_engine_initialized(self) -> None:
        """Nothing to say."""

    def log(self) -> None:
        """Nothing to say."""

    def record_sleep_state(self, *_: Any) -> None:
        """Nothing to count."""


def start(
    model: str | Path | PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase | None,
    tally: Tally,
    *,
    max_rows: int,
    max_model_len: int | None,
    kv_cache_gib: float | None,
    options: Mapping[str, Any],
) -> Any:
    """Return vLLM's engine; to be called in the thread that will step it.

    Raises:
        MissingExtraError: vLLM is not installed.
        ConfigurationError: vLLM refuses the options, or they ask for more than one process.
    """
    for name in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"):
        if int(options.get(name, 1)) != 1:
            raise ConfigurationError(
                f"{name}={options[name]}: the engine in this process has one device. Start `vllm serve` with it, and "
                "use the engine 'vllm-server'."
            )
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        raise ConfigurationError(
            "The engine 'vllm' lives in a process of its own kind of distribution, and this one is part of a "
            "distributed run (torchrun, or another vLLM engine) already. Use the engine 'vllm-server' there."
        )
    with _quiet_guest(), tempfile.TemporaryDirectory(prefix="rstar2-vllm-") as folder:
        try:
            from vllm import EngineArgs
            from vllm.distributed import cleanup_dist_env_and_memory
            from vllm.platforms import current_platform
            from vllm.v1.engine.llm_engine import LLMEngine
        except ModuleNotFoundError as error:
            if error.name == "vllm":
                raise MissingExtraError("vllm", "The engine 'vllm'") from error
            raise
        chosen: dict[str, Any] = {
            "model": str(model),
            # The logits divided by the temperature; what top-p and top-k do to them is undone by our own sampler.
            "logprobs_mode": "processed_logprobs",
            "enable_prefix_caching": True,
            "max_num_seqs": max_rows,
            "max_model_len": max_model_len,
            # Tokens are handed out when a turn begins and when it ends; nobody reads those between.
            "stream_interval": 1 << 30,
            "disable_log_stats": False,
        }
        if isinstance(model, PreTrainedModel):
            chosen |= {"model": folder, "load_format": "dummy", "skip_tokenizer_init": tokenizer is None}
            _write_config(model, tokenizer, Path(folder))
        elif tokenizer is not None:
            tokenizer.save_pretrained(folder)
            chosen["tokenizer"] = folder
        if current_platform.is_cpu():
            # Behind a prompt that is computed in parts, a CPU cannot draw with a seed of the request's own (vLLM 0.32:
            # the step fails with "CPU Generator does not use offset").
            chosen |= {"enforce_eager": True, "enable_chunked_prefill": False}
            kv_cache_gib = _CPU_CACHE_GIB if kv_cache_gib is None else kv_cache_gib
        if kv_cache_gib is not None:
            chosen["kv_cache_memory_bytes"] = int(kv_cache_gib * 2**30)
        try:
            arguments = EngineArgs(**{**chosen, **options})
            # A stat logger in all but its base class, which only vLLM could give it.
            loggers: Any = [tally]
            return LLMEngine.from_vllm_config(arguments.create_engine_config(), stat_loggers=loggers)
        except BaseException as error:
            cleanup_dist_env_and_memory()
            if isinstance(error, (TypeError, ValueError)):
                raise ConfigurationError(f"vLLM refuses these options of the engine 'vllm': {error}") from error
            raise


def _write_config(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None, folder: Path) -> None:
    config = deepcopy(model.config)
    config.architectures = [type(model).__name__]
    config.save_pretrained(str(folder))
    if tokenizer is not None:
        tokenizer.save_pretrained(str(folder))


@contextmanager
def _quiet_guest() -> Iterator[None]:
    """Give vLLM the environment it wants, and put everything back that is not its own."""
    before = dict(os.environ)
    set_threads, threads = torch.set_num_threads, torch.get_num_threads()
    states = random.getstate(), np.random.get_state()
    os.environ.update(_ENVIRONMENT)
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    if "VLLM_LOGGING_LEVEL" not in before:
        logging.getLogger("vllm").setLevel(logging.ERROR)
        os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"
    try:
        with same_draws():
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_num_threads = set_threads
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)


@contextmanager
def same_draws() -> Iterator[None]:
    """Leave torch's generators as they were: a trainer's draws must not depend on how many steps an engine made."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() and torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices):
        yield
