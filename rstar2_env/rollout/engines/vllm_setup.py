"""Starts vLLM inside this process, and undoes vLLM's changes to the process.

vLLM assumes that it owns its process: it seeds every random generator, sets environment variables, replaces
``torch.set_num_threads`` on a CPU, and logs a lot. The trainer runs in the same process, so all of that is restored
once the engine is ready. Covered: one device; a model given as a module, of which vLLM reads only the configuration,
since its weights are loaded later; an engine in each process of torchrun. Not covered: tensor, pipeline and data
parallelism, which need separate processes: use servers.
"""

from __future__ import annotations

import hashlib
import logging
import os
import random
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from transformers import PreTrainedTokenizerBase

from rstar2_env.core.errors import ConfigurationError, MissingExtraError
from rstar2_env.core.progress import say
from rstar2_env.rollout.engine import EngineStats
from rstar2_env.rollout.engines.checkpoint_weights import without_adapters

_ENVIRONMENT = {
    # Run the engine core in this process, so that weights can be passed in memory.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
}
_DEFAULTS = {
    # Otherwise vLLM would bind this process, the trainer's computations included, to certain cores.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}
_CPU_CACHE_GIB = 1.0
_UTILIZATION, _LEAST_UTILIZATION = 0.4, 1e-3


class VllmCounters:
    """A stat logger for vLLM that sums the statistics over all steps."""

    def __init__(self) -> None:
        self.stats = EngineStats()

    def __call__(self, vllm_config: Any, engine_index: int = 0) -> VllmCounters:
        """Return the logger itself, which is also the factory of loggers that vLLM expects."""
        return self

    def record(self, scheduler_stats: Any, iteration_stats: Any, *_: Any, **__: Any) -> None:
        """Add the statistics of one step to the sums."""
        old, step = self.stats, iteration_stats
        if scheduler_stats is not None:
            self.stats = replace(
                self.stats,
                running=scheduler_stats.num_running_reqs,
                waiting=scheduler_stats.num_waiting_reqs,
                kv_usage=scheduler_stats.kv_cache_usage,
            )
            if (cache := scheduler_stats.prefix_cache_stats) is not None:
                again = cache.preempted_queries - cache.preempted_hits
                self.stats = replace(self.stats, recomputed_tokens=(old.recomputed_tokens or 0) + again)
        if step is not None:
            self.stats = replace(
                self.stats,
                preemptions=old.preemptions + step.num_preempted_reqs,
                prompt_tokens=old.prompt_tokens + step.num_prompt_tokens,
                cached_tokens=old.cached_tokens + step.prompt_token_stats.cached_tokens,
                generated_tokens=old.generated_tokens + step.num_generation_tokens,
            )

    def log_engine_initialized(self) -> None:
        """Do nothing; part of vLLM's interface."""

    def log(self) -> None:
        """Do nothing; part of vLLM's interface."""

    def record_sleep_state(self, *_: Any) -> None:
        """Do nothing; part of vLLM's interface."""


def start(
    model: str | Path | nn.Module,
    tokenizer: PreTrainedTokenizerBase | None,
    tally: VllmCounters,
    *,
    max_rows: int,
    max_model_len: int | None,
    kv_cache_gib: float | None,
    utilization: float | None,
    options: Mapping[str, Any],
) -> Any:
    """Start vLLM and return its engine; must be called in the thread that will run its steps.

    Args:
        model: Folder or Hub name of a model; or a module, of which only the configuration is used.
        tokenizer: Needed for stop strings if ``model`` is a module.
        tally: Receives vLLM's statistics after every step.
        max_rows: Maximum number of running requests.
        max_model_len: Maximum number of tokens of prompt and turn together; ``None`` means the model's own limit.
        kv_cache_gib: Size of the KV cache in GiB; ``None`` means 1 on a CPU, and elsewhere lets vLLM choose.
        utilization: Fraction of the device's memory for weights and cache together. ``None`` means 0.4; if
            ``kv_cache_gib`` is set, that size counts instead.
        options: Further arguments of ``vllm.EngineArgs``.

    Raises:
        MissingExtraError: vLLM is not installed.
        ConfigurationError: vLLM refuses the options, they require several devices, or this process is part of a
            distributed run that torchrun did not start.
    """
    for name in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"):
        if int(options.get(name, 1)) != 1:
            raise ConfigurationError(
                f"The option {name}={options[name]} needs several devices, but the engine 'vllm' uses "
                "only one. Start `vllm serve` with this option, and use the engine 'vllm-server'."
            )
    launched = in_run()
    if launched and (torch.distributed.get_world_size() == 1 or "LOCAL_RANK" not in os.environ):
        raise ConfigurationError(
            "The engine 'vllm' needs its own process, or a process started by torchrun; this process is already part "
            "of a distributed run (for example, of another vLLM engine). Use the engine 'vllm-server' instead."
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
            # Log-probabilities of the logits divided by the temperature; ``vllm_worker`` undoes the effect of top-p and
            # top-k.
            "logprobs_mode": "processed_logprobs",
            "enable_prefix_caching": True,
            "max_num_seqs": max_rows,
            "max_model_len": max_model_len,
            # Return tokens only when a turn begins and when it ends.
            "stream_interval": 1 << 30,
            "disable_log_stats": False,
        }
        if launched:
            # Each process of the run has its own engine; vLLM joins their process group instead of creating one.
            chosen["distributed_executor_backend"] = "external_launcher"
        if isinstance(model, nn.Module):
            _write_config(without_adapters(model), tokenizer, Path(folder))
            named = {"model": str(stable_folder(Path(folder)))}
            chosen |= {**named, "load_format": "dummy", "skip_tokenizer_init": tokenizer is None}
        elif tokenizer is not None:
            tokenizer.save_pretrained(folder)
            chosen["tokenizer"] = str(stable_folder(Path(folder)))
        if current_platform.is_cpu():
            # On a CPU, sampling with a request's own seed fails after a prompt that was computed in chunks (vLLM 0.32:
            # "CPU Generator does not use offset").
            chosen |= {"enforce_eager": True, "enable_chunked_prefill": False}
            kv_cache_gib = _CPU_CACHE_GIB if kv_cache_gib is None else kv_cache_gib
        if kv_cache_gib is not None:
            chosen["kv_cache_memory_bytes"] = int(kv_cache_gib * 2**30)
        if utilization is None:
            # If the cache size is set, vLLM only checks that this fraction of the device is free.
            utilization = _UTILIZATION if kv_cache_gib is None else _LEAST_UTILIZATION
        chosen["gpu_memory_utilization"] = utilization
        try:
            arguments = EngineArgs(**{**chosen, **options})
            # A stat logger without vLLM's base class, which would require importing vLLM.
            loggers: Any = [tally]
            if not arguments.enforce_eager:
                say(
                    "vLLM is compiling the model. The first start takes minutes; later starts take seconds "
                    "(the result is kept in ~/.cache/vllm)."
                )
            return LLMEngine.from_vllm_config(arguments.create_engine_config(), stat_loggers=loggers)
        except BaseException as error:
            with runs_group_kept(launched):
                cleanup_dist_env_and_memory()
            if isinstance(error, (TypeError, ValueError)):
                raise ConfigurationError(f"vLLM refuses these options of the engine 'vllm': {error}") from error
            raise


def stable_folder(written: Path) -> Path:
    """Copy a folder into the user's cache, with a digest of its files as the name; return the copy.

    The path of a model is part of the key of vLLM's compile cache: with a new folder at each start, vLLM compiles the
    model at each start. If the cache cannot be written, ``written`` itself is returned.

    Args:
        written: A folder with the configuration of a model, and perhaps its tokenizer.
    """
    digest = hashlib.sha256()
    for path in sorted(written.iterdir()):
        digest.update(f"{path.name} {path.stat().st_size} ".encode() + path.read_bytes())
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rstar2" / "vllm"
    folder = kept / digest.hexdigest()[:16]
    if not folder.is_dir():
        try:
            kept.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=kept) as scratch:
                # Renamed when it is complete, since other processes may do the same at the same time.
                shutil.copytree(written, Path(scratch) / "whole").rename(folder)
        except OSError:
            return folder if folder.is_dir() else written
    return folder


def _write_config(model: Any, tokenizer: PreTrainedTokenizerBase | None, folder: Path) -> None:
    config = deepcopy(model.config)
    # FSDP2 replaces a module's class by a subclass.
    kind = next(kind for kind in type(model).__mro__ if not issubclass(kind, FSDPModule))
    config.architectures = [kind.__name__]
    config.save_pretrained(str(folder))
    if tokenizer is not None:
        tokenizer.save_pretrained(str(folder))


@contextmanager
def _quiet_guest() -> Iterator[None]:
    """Set the environment variables that vLLM needs; after the ``with`` block, undo vLLM's changes to this process.

    This restores the environment variables, the states of the random generators, and torch's number of threads.
    """
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


def is_whole(model: nn.Module) -> bool:
    """Whether this process has all weights of a module, that is, the module is not sharded."""
    return not any(isinstance(one, DTensor) or not one.numel() for one in model.parameters())


def in_run() -> bool:
    """Whether this process already belongs to a torch process group, of a training run or of vLLM."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


@contextmanager
def runs_group_kept(kept: bool) -> Iterator[None]:
    """Within the ``with`` block, keep vLLM from destroying the training run's process group while vLLM shuts down.

    Args:
        kept: Whether the run has a process group; if not, the function does nothing.
    """
    destroy = torch.distributed.destroy_process_group

    def but_the_runs(group: Any = None) -> None:
        if group is not None:
            destroy(group)

    if kept:
        torch.distributed.destroy_process_group = but_the_runs
    try:
        yield
    finally:
        torch.distributed.destroy_process_group = destroy


@contextmanager
def same_draws() -> Iterator[None]:
    """Restore torch's random generators after the ``with`` block, so that engines do not change a trainer's draws."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() and torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices):
        yield
