"""Loads a pretrained model for generation: its tokenizer and chat template, and its weights if the engine needs them.

Covered: folders and names on the Hugging Face hub; a LoRA adapter is merged into its model, because the engines use
plain weights. Not covered: models to train (``rstar2_env.trainers``).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils.peft_utils import find_adapter_config_file

from rstar2_env.core.errors import ConfigurationError, MissingExtraError
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.core.progress import progress
from rstar2_env.models.folder import model_folder
from rstar2_env.rollout.chat import ChatCodec
from rstar2_env.rollout.cpu_norms import replace_norms
from rstar2_env.rollout.engine import Engine
from rstar2_env.rollout.engines.registry import ENGINES, typed_engine_options
from rstar2_env.rollout.model_files import LOAD_ERRORS, check_adapter, load_failure

DTYPES = ("auto", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Pretrained(CheckedOptions):
    """Options of a pretrained model and of the engine that generates with it.

    Attributes:
        path: Folder, GGUF file or hub name of a causal language model, or a LoRA adapter.
        engine: Name of a registered engine.
        engine_options: Options of the engine.
        revision: Branch, tag or commit of a model on the hub; ``None`` for the hub's default branch.
        dtype: Precision; ``"auto"`` is bfloat16 on an accelerator that supports it, else float32.
        attn_implementation: Attention implementation of transformers; ``None`` lets transformers choose.
        trust_remote_code: Run the code that comes with a model on the hub.
        chat_template: ``"chatml"``, a Jinja template, or ``None`` for the tokenizer's own.
        chat_template_options: Variables passed to the template.

    Raises:
        ConfigurationError: A value is out of its range.
    """

    path: str
    engine: str = "transformers"
    engine_options: dict[str, Any] = field(default_factory=dict)
    revision: str | None = None
    dtype: str = option("auto", choices=DTYPES)
    attn_implementation: str | None = None
    trust_remote_code: bool = False
    chat_template: str | None = None
    chat_template_options: dict[str, Any] = field(default_factory=dict)


def open_pretrained(options: Pretrained, *, max_rows: int, seed: int = 0) -> tuple[Engine, ChatCodec]:
    """Load a model into an engine.

    Args:
        options: The model and the engine.
        max_rows: Maximum number of requests in flight.
        seed: Seeds the draws of requests without a seed of their own.

    Returns:
        The engine, which the caller closes, and the codec of the model's chat template.

    Raises:
        ConfigurationError: There is no such model, it cannot be loaded, or an option is invalid.
        UnknownNameError: There is no engine of that name.
        MissingExtraError: A package that the engine needs is not installed.
        ServiceError: A server does not answer.
    """
    kind = ENGINES.get(options.engine)
    engine_options = typed_engine_options(options.engine, options.engine_options, prefix="engine.")
    options = replace(options, path=model_folder(options.path))
    transformers.utils.logging.disable_progress_bar()
    with progress(f"loading the tokenizer of {options.path}"):
        adapter_of = _base_of_adapter(options)
        tokenizer = _tokenizer(options, adapter_of)
    chat = ChatCodec(
        tokenizer,
        chat_template=options.chat_template,
        chat_template_options=options.chat_template_options,
        stop_ids=_ends(options, adapter_of),
    )
    model: Any = None
    if kind.takes_model == "module" or (kind.takes_model == "path" and adapter_of is not None):
        with progress(f"loading {options.path}"):
            model = _model(options, adapter_of)
    elif kind.takes_model == "path":
        model = options.path
        engine_options.setdefault("dtype", str(_dtype(options)).removeprefix("torch."))
        if options.revision is not None:
            engine_options.setdefault("revision", options.revision)
        if options.trust_remote_code:
            engine_options.setdefault("trust_remote_code", True)
    with progress(f"starting the engine {options.engine}"):
        return kind.make(model, tokenizer, max_rows=max_rows, seed=seed, options=engine_options), chat


def _dtype(options: Pretrained) -> torch.dtype:
    if options.dtype == "auto":
        capable = torch.cuda.is_available() and torch.cuda.is_bf16_supported()
        return torch.bfloat16 if capable else torch.float32
    dtype: torch.dtype = getattr(torch, options.dtype)  # one of DTYPES
    return dtype


def _base_of_adapter(options: Pretrained) -> str | None:
    """Return the base model of the adapter at ``options.path``; ``None`` if there is no adapter at that path."""
    if find_adapter_config_file(options.path, revision=options.revision) is None:
        return None
    try:
        from peft import PeftConfig
    except ModuleNotFoundError as error:
        raise MissingExtraError("train", f"The adapter {options.path}") from error
    config = PeftConfig.from_pretrained(options.path, revision=options.revision)
    check_adapter(options.path, config)
    base = config.base_model_name_or_path
    if not base:
        raise ConfigurationError(
            f"The LoRA adapter {options.path!r} does not name the model that it belongs to: add "
            "base_model_name_or_path to its adapter_config.json.",
            option="model",
        )
    return str(base)


def _model(options: Pretrained, adapter_of: str | None) -> PreTrainedModel:
    name = options.path if adapter_of is None else adapter_of
    chosen: dict[str, Any] = {"attn_implementation": options.attn_implementation}
    if adapter_of is None:
        chosen["revision"] = options.revision
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            name,
            dtype=_dtype(options),
            trust_remote_code=options.trust_remote_code,
            **{given: value for given, value in chosen.items() if value is not None},
        )
        if adapter_of is not None:
            from peft import PeftModel

            adapted = PeftModel.from_pretrained(model, options.path, revision=options.revision)
            model = adapted.merge_and_unload(safe_merge=True)
    except (*LOAD_ERRORS, RuntimeError) as error:
        why = load_failure(error)
        raise ConfigurationError(f"The model {options.path!r} cannot be loaded: {why}", option="model") from error
    found: PreTrainedModel = model.eval().requires_grad_(False)
    if torch.cuda.is_available():
        found = found.to(torch.device("cuda"))  # type: ignore[arg-type]
        return found
    replace_norms(found)
    return found


def _tokenizer(options: Pretrained, adapter_of: str | None) -> PreTrainedTokenizerBase:
    name, revision = options.path, options.revision
    if adapter_of is not None and not os.path.isfile(os.path.join(name, "tokenizer_config.json")):
        name, revision = adapter_of, None
    chosen = {} if revision is None else {"revision": revision}
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            name, padding_side="left", trust_remote_code=options.trust_remote_code, **chosen
        )
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"The tokenizer of {name!r} cannot be loaded: {error}", option="model") from error
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _ends(options: Pretrained, adapter_of: str | None) -> list[int]:
    """Return the end-of-sequence tokens of the model's generation configuration.

    Args:
        options: The model.
        adapter_of: The base model if ``options.path`` is an adapter; otherwise ``None``.
    """
    name, revision = (options.path, options.revision) if adapter_of is None else (adapter_of, None)
    try:
        config = GenerationConfig.from_pretrained(name, **({} if revision is None else {"revision": revision}))  # type: ignore[arg-type]  # keywords of loading pass through
    except OSError:
        return []
    ends = config.eos_token_id
    return [int(token) for token in (ends if isinstance(ends, list) else [ends]) if token is not None]
