"""Loads a policy and its tokenizer, and determines the policy's device and precision.

A ROCm build of torch also names its devices ``cuda``, so this module does not distinguish vendors.
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
from rstar2_env.core.files.outputs import files_in, list_files
from rstar2_env.models.suggested_learning_rates import SuggestedOptions, suggest
from rstar2_env.rollout import ChatCodec
from rstar2_env.rollout.cpu_norms import replace_norms
from rstar2_env.rollout.model_files import LOAD_ERRORS, load_failure
from rstar2_env.tools.cut import check_tokenizer

from ...options.config import ModelOptions, TrainConfig
from .adapters import START_DIR, PolicyModel, adapted, adapter_in, base_of, readapted, with_new_adapter, without_dropout
from .sharding.zero import without_compiling


def on_accelerator() -> bool:
    """Whether torch sees an accelerator (CUDA or ROCm)."""
    return torch.cuda.is_available()


def processes(timeout_s: float = 1800.0) -> PartialState:
    """Return accelerate's state of this run's processes; the first call connects them (by gloo on a CPU).

    Args:
        timeout_s: Seconds that one process waits for another before it raises an error; the first call sets it.
    """
    if not on_accelerator():
        # If DeepSpeed is installed, accelerate imports it, and it would warn that there is no accelerator.
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
        without_compiling()
    return PartialState(cpu=not on_accelerator(), timeout=timedelta(seconds=timeout_s))


def suggested_for(model: PolicyModel, options: ModelOptions) -> SuggestedOptions:
    """Return suggested options for the size of a loaded policy."""
    return suggest(base_of(model).num_parameters(), lora=options.lora_rank > 0)


def dtype_of(options: ModelOptions) -> torch.dtype:
    """Return the precision that the options select."""
    if options.dtype == "auto":
        return torch.bfloat16 if on_accelerator() and torch.cuda.is_bf16_supported() else torch.float32
    dtype: torch.dtype = getattr(torch, options.dtype)  # one of DTYPES: the options were checked
    return dtype


def export_dtype_of(config: TrainConfig) -> torch.dtype | None:
    """Return the precision of a run's exports; ``None`` keeps the precision of the weights in the trainer."""
    if config.run.export_dtype != "auto":
        exact: torch.dtype = getattr(torch, config.run.export_dtype)  # one of DTYPES: the options were checked
        return exact
    # In float16 large weights would become infinite; and adapters are small.
    computes = dtype_of(config.model) if config.model.lora_rank == 0 else torch.float32
    return torch.bfloat16 if computes is torch.bfloat16 else None


def load_policy(
    options: ModelOptions, folder: Path, *, seed: int = 0, dropout: bool = False, waits: bool = False
) -> tuple[PolicyModel, PreTrainedTokenizerBase]:
    """Load the model, its adapter and its tokenizer.

    Args:
        options: The model, and whether to train all of its weights or an adapter.
        folder: Folder of the run; a merged model that gets a new adapter is saved in it.
        seed: Seed of a new adapter.
        dropout: Leave dropout on in training mode; otherwise it is turned off (see ``without_dropout``).
        waits: Load only shapes, unless ``path`` is a loaded model; ``fsdp2.shard`` will receive all weights, adapters
            included, from the first process.

    Returns:
        The policy, a ``PeftModel`` unless ``lora_rank`` is 0, and its tokenizer.

    Raises:
        ConfigurationError: The model cannot be loaded, or a loaded model has no ``name_or_path`` from which its
            tokenizer can be loaded.
    """
    be_quiet()
    if options.lora_dropout and not dropout:
        raise ConfigurationError(
            "lora_dropout applies only to the cold start: in reinforcement learning, dropout would add "
            "noise to the probability ratios and the KL divergence. Leave it at 0.",
            option="lora_dropout",
        )
    source = options.path
    if isinstance(source, PreTrainedModel | PeftModel):
        name = base_of(source).name_or_path
        if not name:
            raise ConfigurationError(
                "A model that is passed as an object must have the attribute name_or_path, from which its "
                "tokenizer can be loaded."
            )
        tokenizer = load_tokenizer(name, options, revision=options.revision)
        policy = _continue_loaded(source, options, partial(_keep, folder, tokenizer), seed)
    else:
        name = os.fspath(source)
        found = adapter_in(name, options.revision)
        tokenizer = tokenizer_of(name, options, found)
        if found is None:
            policy = with_new_adapter(_policy(name, options, options.revision, waits=waits), options, seed)
        else:
            base = _policy(str(found.base_model_name_or_path), options, found.revision, waits=waits)
            policy = adapted(base, name, options, found, partial(_keep, folder, tokenizer), seed)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if not dropout:
        without_dropout(policy)
    if not on_accelerator():
        replace_norms(policy)
    return policy, tokenizer


def _continue_loaded(
    loaded: PolicyModel, options: ModelOptions, keep: Callable[[PreTrainedModel], str], seed: int
) -> PolicyModel:
    if isinstance(loaded, PeftModel):
        return readapted(loaded, options, keep, seed)
    if getattr(loaded, "_hf_peft_config_loaded", False):
        raise ConfigurationError(
            "The loaded model contains an adapter that transformers added, which cannot be trained: pass "
            "the folder of the adapter, or a model that peft loaded."
        )
    return with_new_adapter(loaded, options, seed)


def _policy(name: str, options: ModelOptions, revision: str | None, *, waits: bool) -> PreTrainedModel:
    # Trained weights are stored in float32, so that small updates are not lost to rounding, and computed in the
    # requested precision. Frozen weights are stored in the requested precision.
    dtype = dtype_of(options) if options.lora_rank else torch.float32
    return load_model(name, options, dtype, revision=revision, waits=waits)


def load_model(
    name: str,
    options: ModelOptions,
    dtype: torch.dtype,
    *,
    revision: str | None = None,
    waits: bool = False,
    role: str = "model",
) -> PreTrainedModel:
    """Load a causal language model.

    Args:
        name: Folder of the model, or its name on the Hugging Face hub.
        options: The model's attention implementation, and whether to trust code that comes with the model.
        dtype: Precision of the model's weights.
        revision: Branch, tag or commit on the hub; ``None`` for the default branch.
        waits: Load shapes only; ``fsdp2.shard`` will receive the weights.
        role: ``model`` or ``teacher``, for error messages.

    Raises:
        ConfigurationError: The model does not exist, needs a missing package, or cannot be loaded with these options.
    """
    chosen = {
        "revision": revision,
        "attn_implementation": options.attn_implementation,
        "device_map": "meta" if waits else None,
    }
    try:
        model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
            name,
            dtype=dtype,
            trust_remote_code=options.trust_remote_code,
            **{option: value for option, value in chosen.items() if value is not None},
        )
    except LOAD_ERRORS as error:
        option = "model.teacher" if role == "teacher" else None
        raise ConfigurationError(
            f"The {role} {name!r} cannot be loaded: {load_failure(error)}", option=option
        ) from error
    # With this attribute, a trainer would assume that the model is already divided among devices.
    vars(model).pop("hf_device_map", None)
    return model


def tokenizer_of(name: str, options: ModelOptions, found: LoraConfig | None) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a model or adapter; an adapter without a tokenizer uses its base model's tokenizer.

    Args:
        name: Folder or hub name of the model or adapter.
        options: Revision, and whether to trust code that comes with the tokenizer.
        found: Configuration of the adapter; ``None`` for a model.

    Raises:
        ConfigurationError: The tokenizer cannot be loaded.
    """
    if found is not None and os.path.isdir(name) and not os.path.isfile(os.path.join(name, "tokenizer_config.json")):
        return load_tokenizer(str(found.base_model_name_or_path), options, revision=found.revision)
    return load_tokenizer(name, options, revision=options.revision)


def load_tokenizer(name: str, options: ModelOptions, *, revision: str | None = None) -> PreTrainedTokenizerBase:
    """Load a tokenizer.

    Args:
        name: Folder of the tokenizer, or its name on the Hugging Face hub.
        options: Whether to trust code that comes with the tokenizer.
        revision: Branch, tag or commit on the hub; ``None`` for the default branch.

    Raises:
        ConfigurationError: The tokenizer cannot be loaded.
    """
    check_tokenizer(name)
    chosen = {} if revision is None else {"revision": revision}
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            name, padding_side="left", trust_remote_code=options.trust_remote_code, **chosen
        )
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"The tokenizer of {name!r} cannot be loaded: {error}") from error
    return tokenizer


def _keep(folder: Path, tokenizer: PreTrainedTokenizerBase, merged: PreTrainedModel) -> str:
    """Write a merged model to the run's folder, once for all processes, and return its path."""
    at = folder / START_DIR
    if processes().is_main_process:
        list_files(folder, folders={START_DIR: None})
        merged.save_pretrained(str(at))
        tokenizer.save_pretrained(str(at))
        list_files(folder, folders={START_DIR: files_in(at)})
    processes().wait_for_everyone()
    return os.path.abspath(at)


def be_quiet() -> None:
    """Disable the progress bars of transformers and datasets, which would interleave with this package's own."""
    import datasets

    transformers.utils.logging.disable_progress_bar()
    datasets.disable_progress_bars()


def codec(options: ModelOptions, tokenizer: PreTrainedTokenizerBase, model: PolicyModel) -> ChatCodec:
    """Make the chat codec that the options select; the model's end-of-sequence tokens end a turn.

    Args:
        options: The options of the policy.
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
    """Return the fields of transformers' ``TrainingArguments`` for device, precision and gradient checkpointing."""
    accelerator = on_accelerator()
    return {
        "use_cpu": not accelerator,
        "bf16": dtype_of(options) is torch.bfloat16,
        "fp16": dtype_of(options) is torch.float16,
        "gradient_checkpointing": accelerator
        if options.gradient_checkpointing is None
        else options.gradient_checkpointing,
    }
