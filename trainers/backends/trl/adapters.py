"""LoRA adapters of a policy: create an adapter, continue the training of an adapter, or merge it into the weights.

If the folder of a model holds an adapter, the options determine its use:

- ``lora_rank`` equals the adapter's rank (and ``lora_alpha`` and ``lora_targets``, if set, equal the adapter's):
  training continues from the adapter's current values;
- ``lora_rank`` is 0: the adapter is merged into the weights, and all weights are trained;
- otherwise: the adapter is merged, the merged model is written to ``start`` in the run's folder, and a new adapter is
  added to it. Saved adapters name ``start`` as their base model, so loading a saved adapter also loads the merged
  weights.

Covered: LoRA and its variants that peft can merge. Not covered: other kinds of adapters, several adapters in one
folder.
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
from rstar2_env.rollout.model_files import LOAD_ERRORS, check_adapter, load_failure

from ...options.config import ModelOptions

START_DIR = "start"
"""Subfolder of a run's folder for the merged model that is the base of a new adapter."""
ALL_LINEAR = "all-linear"

PolicyModel: TypeAlias = PreTrainedModel | PeftModel


def base_of(policy: nn.Module) -> PreTrainedModel:
    """Return the base model of the adapter, or the model itself if it has no adapter."""
    return cast(PreTrainedModel, policy.get_base_model() if isinstance(policy, PeftModel) else policy)


def adapter_in(name: str, revision: str | None) -> LoraConfig | None:
    """Return the configuration of the adapter in a folder or hub model; ``None`` if it holds no adapter.

    ``revision`` is the branch, tag or commit on the hub; ``None`` means the default branch.

    Raises:
        ConfigurationError: The adapter is not a LoRA adapter, or its configuration cannot be read.
    """
    found = find_adapter_config_file(name, revision=revision)
    if found is None:
        return None
    try:
        config = PeftConfig.from_pretrained(os.path.dirname(found))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ConfigurationError(f"The LoRA adapter {name!r} cannot be read: {error}", option="model") from error
    _only_lora(name, config)
    check_adapter(name, config)
    if os.path.isfile(os.path.join(name, "config.json")):
        raise ConfigurationError(
            f"The folder {name} holds both a whole model and a LoRA adapter, so it is unclear which to "
            "use: move them to separate folders.",
            option="model",
        )
    base = config.base_model_name_or_path
    if base and os.path.isabs(base) and not os.path.isdir(base):
        raise ConfigurationError(
            f"The LoRA adapter {name} belongs to the model {base}, which does not exist: restore the "
            "model, or correct base_model_name_or_path in adapter_config.json.",
            option="model",
        )
    if not base:
        raise ConfigurationError(
            f"The LoRA adapter {name!r} does not name the model that it belongs to: add "
            "base_model_name_or_path to its adapter_config.json.",
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
    """Keep a trained adapter if it fits the LoRA options (see ``continues``); otherwise merge it into the weights.

    Args:
        base: The base model of the adapter; changed in place. If its weights are not loaded yet (they are on the device
            "meta"), the adapter's weights are not read either.
        name: Folder or hub name of the adapter.
        options: Options of the policy.
        found: The adapter's configuration.
        keep: Saves a merged model that gets a new adapter; returns the name under which it can be loaded again.
        seed: Seed of a new adapter.

    Raises:
        ConfigurationError: The adapter does not fit the model.
    """
    same = continues(found, options)
    if same and options.lora_dropout:
        found.lora_dropout = options.lora_dropout
    if base.device.type == "meta":
        # The adapter's values will be received later, so a special initialization is neither possible nor needed.
        found.inference_mode, found.init_lora_weights = not same, True
        empty: Any = get_peft_model(base, found)
        return cast(PolicyModel, empty) if same else _merged(empty, options, keep, seed)
    try:
        policy: PeftModel = PeftModel.from_pretrained(
            base, name, revision=options.revision, config=found, is_trainable=same
        )
    except (*LOAD_ERRORS, RuntimeError) as error:
        raise ConfigurationError(
            f"The LoRA adapter {name!r} does not fit the model {found.base_model_name_or_path!r} that it "
            f"names: {load_failure(error)}",
            option="model",
        ) from error
    return policy if same else _merged(policy, options, keep, seed)


def readapted(
    policy: PeftModel, options: ModelOptions, keep: Callable[[PreTrainedModel], str], seed: int
) -> PolicyModel:
    """Continue or merge the adapter of a model that is already loaded; arguments as for ``adapted``.

    Raises:
        ConfigurationError: The adapter is not a LoRA adapter, or there are several adapters.
    """
    if list(policy.peft_config) != ["default"]:
        raise ConfigurationError(
            f"The loaded model has the LoRA adapters {', '.join(policy.peft_config)}; it must have "
            "exactly one, with the name 'default'."
        )
    found = policy.peft_config["default"]
    _only_lora("the loaded model", found)
    if not continues(found, options):
        return _merged(policy, options, keep, seed)
    policy.set_adapter("default")
    return policy


def continues(found: LoraConfig, options: ModelOptions) -> bool:
    """Whether an adapter has the rank, alpha and targets of the options, so that its training continues."""
    given = options.lora_targets
    return (
        options.lora_rank == found.r
        and options.lora_alpha in (None, found.lora_alpha)
        and (given == ALL_LINEAR or _names(given) == _names(found.target_modules))
    )


def with_new_adapter(base: PreTrainedModel, options: ModelOptions, seed: int) -> PolicyModel:
    """Add a new adapter unless ``lora_rank`` is 0; the model's output stays the same until the first optimizer step.

    Args:
        base: The model; changed in place.
        options: Options of the adapter.
        seed: Seed of the adapter's initial weights: one of the two factors is random, and the other is 0.

    Raises:
        ConfigurationError: The model has no module with one of the targets' names.
    """
    if not options.lora_rank:
        return base
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
        # An absolute path, so that the saved adapter finds its model from any working directory.
        found.base_model_name_or_path = os.path.abspath(found.base_model_name_or_path)
    return policy


def without_dropout(policy: nn.Module) -> None:
    """Disable dropout permanently, even in training mode.

    With dropout, a token's probability ratio, and the weight that corrects for engine-trainer mismatch, would fluctuate
    around 1 even if the weights of the model did not change.
    """
    for module in policy.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name in ("attention_dropout", "dropout_p"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


def _merged(policy: PeftModel, options: ModelOptions, keep: Callable[[PreTrainedModel], str], seed: int) -> PolicyModel:
    with torch.no_grad():
        # A safe merge checks values, which a model on the device "meta" does not have.
        merged: PreTrainedModel = policy.merge_and_unload(safe_merge=policy.device.type != "meta")
    for weights in merged.parameters():
        weights.requires_grad_(True)
    if options.lora_rank:
        merged.name_or_path = merged.config._name_or_path = keep(merged)
    return with_new_adapter(merged, options, seed)


def _only_lora(name: str, config: Any) -> None:
    if not isinstance(config, LoraConfig):
        kind = getattr(config, "peft_type", None)
        raise ConfigurationError(
            f"{name} holds an adapter of the kind {getattr(kind, 'value', kind)}, but only LoRA adapters "
            "can be trained or merged. Merge the adapter with peft, and use the merged model.",
            option="model",
        )


def _names(targets: Any) -> Any:
    return frozenset(targets) if isinstance(targets, list | tuple | set | frozenset) else targets
