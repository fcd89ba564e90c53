"""``write_weights``: writes weights, from a model's folder or from shards, to a folder that transformers can load.

Covered: copying unchanged files, converting precision, merging LoRA adapters (in float32), shards of FSDP2 and ZeRO;
tokenizer, chat template, and a generation configuration with the end-of-turn tokens of the policy. Not covered:
quantized formats.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import fields
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from peft import PeftModel
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, GenerationConfig, PreTrainedTokenizerBase

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.models.facts import read_safetensors
from rstar2_env.rollout import CHATML, ChatCodec

from ..backends.trl.adapters import START_DIR, PolicyModel, adapter_in, base_of
from ..backends.trl.model import be_quiet, load_policy, tokenizer_of
from ..backends.trl.sharding import shards
from ..backends.trl.sharding.torch_state import TorchState
from ..options.config import ModelOptions
from .source import Weights

_COPIED = (
    "config.json",
    "generation_config.json",
    "adapter_config.json",
    "*.safetensors",
    "*.safetensors.index.json",
    "pytorch_model*.bin",
    "pytorch_model*.bin.index.json",
    "*.py",
)
"""Files of a model that are copied unchanged; ``*.py`` is the model's own code."""


def write_weights(
    weights: Weights, into: Path, *, merge: bool, dtype: str | None, own_code: bool = False
) -> tuple[bool, str]:
    """Write weights to a folder that transformers can load.

    Args:
        weights: The weights to write, as ``find_weights`` returns them.
        into: An existing empty folder.
        merge: Merge a LoRA adapter into its base weights; no effect on weights without an adapter.
        dtype: Precision of the written weights, by torch's name; ``None`` keeps the precision of the files, or of the
            base model for merged weights.
        own_code: Whether the code that comes with the model may run.

    Returns:
        Whether an adapter was merged, and the precision.

    Raises:
        ConfigurationError: The weights cannot be read, or the base model of an adapter in shards does not exist.
    """
    be_quiet()
    below = adapter_in(str(weights.folder), None) if weights.adapter else None
    merged = False
    if weights.sharded:
        policy, tokenizer = _from_shards(weights, own_code)
        merged = merge and isinstance(policy, PeftModel)
        own = base_of(policy).config
        _save(policy, into, merge=merged, dtype=dtype, below=_precision_of(own._name_or_path, None, own_code))
    elif below is not None and merge:
        merged = True
        policy, tokenizer = _loaded(weights, own_code)
        stored = _precision_of(str(below.base_model_name_or_path), below.revision, own_code)
        _save(policy, into, merge=True, dtype=dtype, below=stored)
    elif below is not None or dtype is None:
        tokenizer = tokenizer_of(str(weights.folder), _options(weights, own_code), below)
        _copy(weights.folder, into)
        if dtype is not None:
            _cast(into, dtype)
    else:
        policy, tokenizer = _loaded(weights, own_code)
        _save(policy, into, merge=False, dtype=dtype, below=None)
        for path in weights.folder.glob("*.py"):
            shutil.copyfile(path, into / path.name)
    _save_tokenizer(tokenizer, weights, into)
    return merged, _stored(into)


def _loaded(weights: Weights, own_code: bool) -> tuple[PolicyModel, PreTrainedTokenizerBase]:
    """Load the weights of a folder in float32, and merge the adapter if there is one."""
    return load_policy(_options(weights, own_code), weights.folder, dropout=True)


def _options(weights: Weights, own_code: bool) -> ModelOptions:
    return ModelOptions(path=weights.folder, dtype="float32", trust_remote_code=own_code)


def _from_shards(weights: Weights, own_code: bool) -> tuple[PolicyModel, PreTrainedTokenizerBase]:
    """Load the policy of a sharded checkpoint: create it as the run did and load the checkpoint's weights."""
    known = {field.name for field in fields(ModelOptions)}
    given = {name: value for name, value in weights.options.items() if name in known}
    given["trust_remote_code"] = own_code
    assert weights.run is not None
    start = weights.run.path / START_DIR
    if given.get("lora_rank") and start.is_dir():
        # The run merged its initial adapter and added a new one on top.
        given |= {"path": str(start.resolve()), "revision": None}
    with TemporaryDirectory() as scratch:
        policy, tokenizer = load_policy(ModelOptions(**given), Path(scratch), dropout=True)
    shards.read(weights.folder, TorchState(policy).wanted_weights)
    return policy, tokenizer


def _save(policy: PolicyModel, into: Path, *, merge: bool, dtype: str | None, below: torch.dtype | None) -> None:
    if isinstance(policy, PeftModel):
        if not merge:
            policy.save_pretrained(str(into))
            if dtype is not None:
                _cast(into, dtype)
            return
        policy = policy.float().merge_and_unload(safe_merge=True)
    wanted: torch.dtype | None = None if dtype is None else getattr(torch, dtype)
    if wanted is None and merge:
        wanted = below
    model: Any = policy
    if wanted is not None:
        model.to(wanted)
    model.save_pretrained(str(into))


def _precision_of(name: str, revision: str | None, own_code: bool) -> torch.dtype:
    """Return the precision that a model's configuration declares; float32 if it declares none."""
    chosen = {} if revision is None else {"revision": revision}
    found = AutoConfig.from_pretrained(name, trust_remote_code=own_code, **chosen).dtype
    return found if isinstance(found, torch.dtype) else torch.float32


def _copy(folder: Path, into: Path) -> None:
    for pattern in _COPIED:
        for path in sorted(folder.glob(pattern)):
            if path.suffix == ".safetensors":
                read_safetensors(path)  # an error names this file, not the copy
            shutil.copyfile(path, into / path.name)


def _cast(folder: Path, dtype: str) -> None:
    """Convert the adapter in a folder to a given precision."""
    for path in folder.glob("*.safetensors"):
        try:
            tensors = {name: one.to(getattr(torch, dtype)) for name, one in load_file(path).items()}
        except SafetensorError as error:
            raise ConfigurationError(f"The weights {path.name} cannot be read: {error}.") from error
        save_file(tensors, path, metadata={"format": "pt"})


def _save_tokenizer(tokenizer: PreTrainedTokenizerBase, weights: Weights, into: Path) -> None:
    """Write the tokenizer with the training chat template; add end-of-turn tokens to the generation configuration.

    For weights without a run, the generation configuration does not change.
    """
    options = weights.options
    template = options.get("chat_template")
    if template:
        tokenizer.chat_template = CHATML if template == "chatml" else template
    tokenizer.save_pretrained(str(into))
    if weights.run is None or not tokenizer.chat_template or not (into / "config.json").is_file():
        return
    generation = _generation(into)
    held = generation.eos_token_id
    codec = ChatCodec(
        tokenizer,
        chat_template_options=options.get("chat_template_options") or {},
        stop_ids=[one for one in (held if isinstance(held, list) else [held]) if one is not None],
    )
    ends = list(codec.stop_ids)
    generation.eos_token_id = ends[0] if len(ends) == 1 else ends
    if generation.pad_token_id is None:
        generation.pad_token_id = tokenizer.pad_token_id
    generation.save_pretrained(str(into))


def _generation(folder: Path) -> GenerationConfig:
    if (folder / "generation_config.json").is_file():
        return GenerationConfig.from_pretrained(str(folder))
    return GenerationConfig()


def _stored(folder: Path) -> str:
    """Return the precision of most weights in a folder, by torch's name.

    Raises:
        ConfigurationError: The folder has no weights, or they cannot be read.
    """
    counts: Counter[str] = Counter()
    for path in folder.glob("*.safetensors"):
        for kind, shape in read_safetensors(path):
            counts[kind] += prod(shape)
    if not counts:
        if any(folder.glob("pytorch_model*.bin")):
            return "as stored"
        raise ConfigurationError(f"No weights were written to {folder}: it does not contain a file *.safetensors.")
    most, _ = counts.most_common(1)[0]
    return {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}.get(most, most)
