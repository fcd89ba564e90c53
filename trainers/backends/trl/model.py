"""Loads a policy: its model, its tokenizer, its device and its precision.

A ROCm build of torch names its devices ``cuda``, so nothing here asks which vendor made the accelerator.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import transformers
from accelerate import PartialState
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rollout import ChatCodec

from ...config import TrainConfig


def on_accelerator() -> bool:
    """Whether torch sees an accelerator (CUDA or ROCm)."""
    return torch.cuda.is_available()


def processes(timeout_s: float = 1800.0) -> PartialState:
    """Return the state of this run's processes; the first call connects them (with gloo if there is no accelerator).

    Args:
        timeout_s: Seconds that one process waits for another before it raises an error; set by the first call.
    """
    return PartialState(cpu=not on_accelerator(), timeout=timedelta(seconds=timeout_s))


def dtype_of(config: TrainConfig) -> torch.dtype:
    """Return the precision that the options ask for."""
    if config.dtype == "auto":
        return torch.bfloat16 if on_accelerator() and torch.cuda.is_bf16_supported() else torch.float32
    dtype: torch.dtype = getattr(torch, config.dtype)  # one of DTYPES: the options were checked
    return dtype


def load_policy(config: TrainConfig) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load the model and its tokenizer.

    Raises:
        ConfigurationError: The model cannot be loaded, or a model that is already loaded has no ``name_or_path`` from
            which to load its tokenizer.
    """
    be_quiet()
    source = config.model
    if isinstance(source, PreTrainedModel):
        name = source.name_or_path
        if not name:
            raise ConfigurationError("A loaded model must have a name_or_path from which its tokenizer can be loaded.")
        model = source
    else:
        name = str(source)
        try:
            # Trained weights are stored in float32 and computed with in the requested precision, so that small updates
            # are not lost to rounding; frozen weights do not need that.
            kept_in = dtype_of(config) if config.lora_rank else torch.float32
            model = AutoModelForCausalLM.from_pretrained(name, dtype=kept_in)
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"The model {name!r} cannot be loaded: {error}") from error
    tokenizer = AutoTokenizer.from_pretrained(name, padding_side="left")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model, tokenizer


def lora(config: TrainConfig) -> Any:
    """Return the LoRA adapters that the options ask for as a peft configuration, or ``None``."""
    if not config.lora_rank:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=config.lora_rank, lora_alpha=2 * config.lora_rank, target_modules="all-linear", task_type="CAUSAL_LM"
    )


def be_quiet() -> None:
    """Disable the progress bars of transformers and datasets, which would interleave with this package's own."""
    import datasets

    transformers.utils.logging.disable_progress_bar()
    datasets.disable_progress_bars()


def codec(config: TrainConfig, tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel) -> ChatCodec:
    """Make the chat codec that the options ask for; the model's end-of-sequence tokens end a turn.

    Args:
        config: Options of the run.
        tokenizer: The tokenizer of the policy.
        model: The policy; its generation configuration names its end-of-sequence tokens.
    """
    ends = getattr(model.generation_config, "eos_token_id", None)
    stop_ids = ends if isinstance(ends, list) else [ends]
    return ChatCodec(
        tokenizer,
        chat_template=config.chat_template,
        chat_template_options=config.chat_template_options,
        stop_ids=[int(token) for token in stop_ids if token is not None],
    )


def precision_options(config: TrainConfig) -> dict[str, Any]:
    """Return the fields of transformers' ``TrainingArguments`` that set device and precision."""
    accelerator = on_accelerator()
    return {
        "use_cpu": not accelerator,
        "bf16": dtype_of(config) is torch.bfloat16,
        "fp16": dtype_of(config) is torch.float16,
        "gradient_checkpointing": accelerator
        if config.gradient_checkpointing is None
        else config.gradient_checkpointing,
    }
