"""LoRA adapters of a policy: made new, taken up from a cold start, or merged into the weights.

What becomes of a model whose folder holds an adapter:

- the options ask for the same adapter (``lora_rank``, and ``lora_alpha`` and ``lora_targets`` where they are given): it
  goes on training, and computes what it computed;
- ``lora_rank=0``: it is merged into the weights, which train;
- another adapter: it is merged, the result is written to ``start`` in the run's folder, and a new adapter is put on it.
  The saved results then name that folder as their base, so that the cold start is part of them.

Covered: LoRA and its variants that peft can merge. Not covered: other kinds of adapters, several in one folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import torch
from peft import LoraConfig, PeftConfig, PeftModel, get_peft_model
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.peft_utils import find_adapter_config_file

from rstar2_env.core.errors import ConfigurationError

from ...options.config import ModelOptions

START_DIR = "start"
"""Folder, in that of a run, of the merged model that a new adapter stands on."""
ALL_LINEAR = "all-linear"

PolicyModel: TypeAlias = PreTrainedModel | PeftModel


def base_of(policy: nn.Module) -> PreTrainedModel:
    """Return the model below the adapter, or the model itself if it has none."""
    return cast(PreTrainedModel, policy.get_base_model() if isinstance(policy, PeftModel) else policy)


def adapter_in(name: str, revision: str | None) -> LoraConfig | None:
    """Return the configuration of the adapter that a folder or a model on the hub holds, or ``None``.

    Raises:
        ConfigurationError: It is no LoRA adapter, or its configuration cannot be read.
    """
    found = find_adapter_config_file(name, revision=revision)
    if found is None:
        return None
    try:
        config = PeftConfig.from_pretrained(os.path.dirname(found))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ConfigurationError(f"The adapter {name!r} cannot be read: {error}", option="model") from error
    _only_lora(name, config)
    if os.path.isfile(os.path.join(name, "config.json")):
        raise ConfigurationError(
            f"{name} holds both a model and an adapter: put them into folders of their own.", option="model"
        )
    base = config.base_model_name_or_path
    if base and os.path.isabs(base) and not os.path.isdir(base):
        raise ConfigurationError(
            f"The adapter {name} belongs to the model {base}, which is not there: put it back, or write where it is "
            "into base_model_name_or_path of adapter_config.json.",
            option="model",
        )
    if not base:
        raise ConfigurationError(
            f"The adapter {name!r} does not say which model it belongs to: its adapter_config.json has no "
            "base_model_name_or_path.",
            option="model",
        )
    return config


def adapted(
    base: PreTrainedModel,
    name: str,
    options: ModelOptions,
    found: LoraConfig,
    keep: Callable[[PreTrainedModel], str],
    seed: int,
) -> PolicyModel:
    """Take up an adapter that was trained before, as the options say; see the module's docstring.

    Args:
        base: The model that the adapter belongs to; changed in place. Where it waits for its weights (it is on the
            device "meta"), so does the policy: the adapter's are not read.
        name: Folder or hub name of the adapter.
        options: What the policy is to be.
        found: The adapter's configuration.
        keep: Keeps a merged model that gets a new adapter; returns the name under which it can be loaded again.
        seed: Seed of a new adapter.

    Raises:
        ConfigurationError: The adapter does not fit the model.
    """
    same = continues(found, options)
    if same and options.lora_dropout:
        found.lora_dropout = options.lora_dropout
    if base.device.type == "meta":
        # However the adapter began, its values are on the way: without them, it can only begin as an ordinary one.
        found.inference_mode, found.init_lora_weights = not same, True
        empty: Any = get_peft_model(base, found)
        return cast(PolicyModel, empty) if same else _merged(empty, options, keep, seed)
    try:
        policy: PeftModel = PeftModel.from_pretrained(
            base, name, revision=options.revision, config=found, is_trainable=same
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigurationError(
            f"The adapter {name!r} does not fit its model {found.base_model_name_or_path!r}: {error}", option="model"
        ) from error
    return policy if same else _merged(policy, options, keep, seed)


def readapted(
    policy: PeftModel, options: ModelOptions, keep: Callable[[PreTrainedModel], str], seed: int
) -> PolicyModel:
    """Take up the adapter of a loaded model, as the options say.

    Raises:
        ConfigurationError: It is no LoRA adapter, or there are several.
    """
    if list(policy.peft_config) != ["default"]:
        raise ConfigurationError(
            f"The loaded model has the adapters {', '.join(policy.peft_config)}; one, named 'default', can be trained."
        )
    found = policy.peft_config["default"]
    _only_lora("the loaded model", found)
    if not continues(found, options):
        return _merged(policy, options, keep, seed)
    policy.set_adapter("default")
    return policy


def continues(found: LoraConfig, options: ModelOptions) -> bool:
    """Whether an adapter is the one that the options ask for, so that it goes on training."""
    given = options.lora_targets
    return (
        options.lora_rank == found.r
        and options.lora_alpha in (None, found.lora_alpha)
        and (given == ALL_LINEAR or _names(given) == _names(found.target_modules))
    )


def with_new_adapter(base: PreTrainedModel, options: ModelOptions, seed: int) -> PeftModel:
    """Put a new adapter on a model; it changes nothing before its first step.

    Args:
        base: The model; changed in place.
        options: What the adapter is.
        seed: Seed of its random half.

    Raises:
        ConfigurationError: The model has no module of the targets' names.
    """
    config = LoraConfig(
        r=options.lora_rank,
        lora_alpha=2 * options.lora_rank if options.lora_alpha is None else options.lora_alpha,
        target_modules=options.lora_targets,
        lora_dropout=options.lora_dropout,
        task_type="CAUSAL_LM",
    )
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            policy: PeftModel = get_peft_model(base, config)
    except ValueError as error:
        raise ConfigurationError(f"lora_targets={options.lora_targets!r}: {error}", option="lora_targets") from error
    found = policy.peft_config["default"]
    if os.path.isdir(str(found.base_model_name_or_path)):
        # The saved adapter must find its model from any folder.
        found.base_model_name_or_path = os.path.abspath(found.base_model_name_or_path)
    return policy


def without_dropout(policy: nn.Module) -> None:
    """Switch dropout off for good, in training mode too.

    The gradient's pass computes log-probabilities as well. With dropout, the ratio of a token whose probability did not
    change would be noise around 1, and so would the weights that correct for the engine.
    """
    for module in policy.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name in ("attention_dropout", "dropout_p"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


def _merged(policy: PeftModel, options: ModelOptions, keep: Callable[[PreTrainedModel], str], seed: int) -> PolicyModel:
    with torch.no_grad():
        # The check of a safe merge needs values.
        merged: PreTrainedModel = policy.merge_and_unload(safe_merge=policy.device.type != "meta")
    for weights in merged.parameters():
        weights.requires_grad_(True)
    if not options.lora_rank:
        return merged
    merged.name_or_path = merged.config._name_or_path = keep(merged)
    return with_new_adapter(merged, options, seed)


def _only_lora(name: str, config: Any) -> None:
    if not isinstance(config, LoraConfig):
        kind = getattr(config, "peft_type", None)
        raise ConfigurationError(
            f"{name} holds an adapter of the kind {getattr(kind, 'value', kind)}; only LoRA adapters can be trained on "
            "or merged here. Merge it with peft, and give the merged model.",
            option="model",
        )


def _names(targets: Any) -> Any:
    return frozenset(targets) if isinstance(targets, list | tuple | set | frozenset) else targets
