"""Loads a policy: its model, its tokenizer, its device and its precision.

A ROCm build of torch names its devices ``cuda``, so nothing here asks which vendor made the accelerator.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from accelerate import PartialState
from peft import LoraConfig, PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout import ChatCodec

from ...options.config import ModelOptions
from .adapters import START_DIR, Policy, adapted, adapter_in, base_of, readapted, with_new_adapter, without_dropout
from .sharding.zero import without_compiling


def on_accelerator() -> bool:
    """Whether torch sees an accelerator (CUDA or ROCm)."""
    return torch.cuda.is_available()


def processes(timeout_s: float = 1800.0) -> PartialState:
    """Return the state of this run's processes; the first call connects them (with gloo if there is no accelerator).

    Args:
        timeout_s: Seconds that one process waits for another before it raises an error; set by the first call.
    """
    if not on_accelerator():
        # Where DeepSpeed is installed, accelerate imports it, which then looks for accelerators and warns of none.
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
        without_compiling()
    return PartialState(cpu=not on_accelerator(), timeout=timedelta(seconds=timeout_s))


def dtype_of(options: ModelOptions) -> torch.dtype:
    """Return the precision that the options ask for."""
    if options.dtype == "auto":
        return torch.bfloat16 if on_accelerator() and torch.cuda.is_bf16_supported() else torch.float32
    dtype: torch.dtype = getattr(torch, options.dtype)  # one of DTYPES: the options were checked
    return dtype


def load_policy(
    options: ModelOptions, folder: Path, *, seed: int = 0, dropout: bool = False, waits: bool = False
) -> tuple[Policy, PreTrainedTokenizerBase]:
    """Load the model, its adapter and its tokenizer.

    Args:
        options: What the policy is, and which of its weights train.
        folder: Folder of the run; a merged model that gets a new adapter is kept in it.
        seed: Seed of a new adapter.
        dropout: Leave dropout on while the policy trains; without, it is off for good (see ``without_dropout``).
        waits: Whether this process may leave the weights to ``fsdp2.shard``, which gets them from the first process,
            those of adapters too; the policy is then without any where ``path`` names it.

    Returns:
        The policy, a ``PeftModel`` where ``lora_rank`` is not 0, and its tokenizer.

    Raises:
        ConfigurationError: The model cannot be loaded, or a model that is already loaded has no ``name_or_path`` from
            which to load its tokenizer.
    """
    be_quiet()
    if options.lora_dropout and not dropout:
        raise ConfigurationError(
            "lora_dropout is for the cold start: with dropout, the probability ratios and the KL divergence of "
            "reinforcement learning would be noise. Leave it at 0.",
            option="lora_dropout",
        )
    source = options.path
    if isinstance(source, PreTrainedModel | PeftModel):
        name = base_of(source).name_or_path
        if not name:
            raise ConfigurationError("A loaded model must have a name_or_path from which its tokenizer can be loaded.")
        tokenizer = load_tokenizer(name, options, revision=options.revision)
        policy = _take_up(source, options, partial(_keep, folder, tokenizer), seed)
    else:
        name = os.fspath(source)
        found = adapter_in(name, options.revision)
        tokenizer = _tokenizer_of(name, options, found)
        policy = _load(name, options, found, partial(_keep, folder, tokenizer), seed, waits)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if not dropout:
        without_dropout(policy)
    return policy, tokenizer


def _take_up(loaded: Policy, options: ModelOptions, keep: Callable[[PreTrainedModel], str], seed: int) -> Policy:
    if isinstance(loaded, PeftModel):
        return readapted(loaded, options, keep, seed)
    if getattr(loaded, "_hf_peft_config_loaded", False):
        raise ConfigurationError(
            "The loaded model has an adapter inside that transformers put there, which cannot be trained on: give the "
            "adapter's folder, or a model that peft loaded."
        )
    return with_new_adapter(loaded, options, seed) if options.lora_rank else loaded


def _load(
    name: str,
    options: ModelOptions,
    found: LoraConfig | None,
    keep: Callable[[PreTrainedModel], str],
    seed: int,
    waits: bool,
) -> Policy:
    if found is None:
        model = _pretrained(name, options, options.revision, waits=waits)
        return with_new_adapter(model, options, seed) if options.lora_rank else model
    base = str(found.base_model_name_or_path)
    return adapted(_pretrained(base, options, found.revision, waits=waits), name, options, found, keep, seed)


def _pretrained(name: str, options: ModelOptions, revision: str | None, *, waits: bool) -> PreTrainedModel:
    # Trained weights are stored in float32 and computed with in the requested precision, so that small updates are not
    # lost to rounding; frozen weights do not need that.
    dtype = dtype_of(options) if options.lora_rank else torch.float32
    try:
        return pretrained(name, options, dtype, revision=revision, waits=waits)
    except (OSError, ValueError, ImportError) as error:
        raise ConfigurationError(f"The model {name!r} cannot be loaded: {error}") from error


def pretrained(
    name: str, options: ModelOptions, dtype: torch.dtype, *, revision: str | None = None, waits: bool = False
) -> PreTrainedModel:
    """Load a causal language model.

    Args:
        name: Folder or hub name.
        options: Its attention, and whether to trust code that comes with it.
        dtype: Precision of its weights.
        revision: On the hub.
        waits: Leave the weights to ``fsdp2.shard``: they have shapes and nothing else.

    Raises:
        OSError: There is none.
        ValueError: It cannot be loaded so.
        ImportError: It needs what is not installed.
    """
    chosen = {
        "revision": revision,
        "attn_implementation": options.attn_implementation,
        "device_map": "meta" if waits else None,
    }
    model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
        name,
        dtype=dtype,
        trust_remote_code=options.trust_remote_code,
        **{option: value for option, value in chosen.items() if value is not None},
    )
    vars(model).pop("hf_device_map", None)  # a trainer takes a model that has one for divided among devices already
    return model


def _tokenizer_of(name: str, options: ModelOptions, found: LoraConfig | None) -> PreTrainedTokenizerBase:
    """The tokenizer in a model's folder; of an adapter without one, that of its model."""
    if found is not None and os.path.isdir(name) and not os.path.isfile(os.path.join(name, "tokenizer_config.json")):
        return load_tokenizer(str(found.base_model_name_or_path), options, revision=found.revision)
    return load_tokenizer(name, options, revision=options.revision)


def load_tokenizer(name: str, options: ModelOptions, *, revision: str | None = None) -> PreTrainedTokenizerBase:
    """Load a tokenizer.

    Args:
        name: Folder or hub name.
        options: Whether to trust code that comes with it.
        revision: On the hub.

    Raises:
        ConfigurationError: It cannot be loaded.
    """
    chosen = {} if revision is None else {"revision": revision}
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            name, padding_side="left", trust_remote_code=options.trust_remote_code, **chosen
        )
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"The tokenizer of {name!r} cannot be loaded: {error}") from error
    return tokenizer


def _keep(folder: Path, tokenizer: PreTrainedTokenizerBase, merged: PreTrainedModel) -> str:
    """Write a merged model to the run's folder, once for all processes, and return where it is."""
    at = folder / START_DIR
    if processes().is_main_process:
        merged.save_pretrained(str(at))
        tokenizer.save_pretrained(str(at))
    processes().wait_for_everyone()
    return os.path.abspath(at)


def be_quiet() -> None:
    """Disable the progress bars of transformers and datasets, which would interleave with this package's own."""
    import datasets

    transformers.utils.logging.disable_progress_bar()
    datasets.disable_progress_bars()


def codec(options: ModelOptions, tokenizer: PreTrainedTokenizerBase, model: Policy) -> ChatCodec:
    """Make the chat codec that the options ask for; the model's end-of-sequence tokens end a turn.

    Args:
        options: What the policy is.
        tokenizer: The tokenizer of the policy.
        model: The policy; its generation configuration names its end-of-sequence tokens.
    """
    ends = getattr(model.generation_config, "eos_token_id", None)
    stop_ids = ends if isinstance(ends, list) else [ends]
    return ChatCodec(
        tokenizer,
        chat_template=options.chat_template,
        chat_template_options=options.chat_template_options,
        stop_ids=[int(token) for token in stop_ids if token is not None],
    )


def precision_options(options: ModelOptions) -> dict[str, Any]:
    """Return the fields of transformers' ``TrainingArguments`` that set device and precision."""
    accelerator = on_accelerator()
    return {
        "use_cpu": not accelerator,
        "bf16": dtype_of(options) is torch.bfloat16,
        "fp16": dtype_of(options) is torch.float16,
        "gradient_checkpointing": accelerator
        if options.gradient_checkpointing is None
        else options.gradient_checkpointing,
    }
