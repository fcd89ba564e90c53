"""Engines with weights of their own, for ``planted_runs``: what they do with the weights that the trainer sends.

The tiny model computes in this process, as the engine ``transformers`` does, but in a copy, as the engines of vLLM do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import pytest
import torch
from peft import get_peft_model, set_peft_model_state_dict
from transformers import AutoModelForCausalLM

from rstar2_env.core.options.declare import checked
from rstar2_env.rollout.engines.checkpoint_weights import named_weights, without_adapters
from rstar2_env.rollout.engines.registry import ENGINES, EngineKind
from rstar2_env.rollout.engines.transformers_engine import TransformersEngine

NAME = "copied"
Load = Callable[[Any, Any], None]
"""Loads what the trainer sent, into the engine's model."""


class CopiedEngine(TransformersEngine):
    """Generates with a copy of the policy.

    Args:
        model: The policy; its copy has the initial weights, and an adapter if the engine takes adapters.
        tokenizer: Tokenizer of the policy.
        load: Loads new weights.
        takes: What the trainer sends: ``weights``, with adapters merged, or the ``adapter``.
        **options: Options of the engine.
    """

    def __init__(self, model: Any, tokenizer: Any, load: Load, takes: str = "weights", **options: Any) -> None:
        own: Any = AutoModelForCausalLM.from_pretrained(without_adapters(model).name_or_path, dtype=torch.float32)
        if takes == "adapter":
            own = get_peft_model(own, deepcopy(model.peft_config["default"]))
        super().__init__(own, tokenizer, **options)
        self.takes, self._load_sent = takes, load

    @torch.no_grad()
    def update_weights(self, version: int, weights: Any = None) -> None:
        """Load the weights, and remember their version."""
        self._load_sent(self.model, weights)
        super().update_weights(version)


def whole(model: Any, weights: Any) -> None:
    """Load all weights."""
    model.load_state_dict(dict(named_weights(weights)))


def nothing(model: Any, weights: Any) -> None:
    """Keep the initial weights."""


def adapter(model: Any, weights: Any) -> None:
    """Load the adapter."""
    set_peft_model_state_dict(model, dict(weights.tensors))


def misnamed_adapter(model: Any, weights: Any) -> None:
    """Load the adapter by names that the model does not have, so that peft ignores them."""
    renamed = {name.replace("base_model.model.", "base_model.policy."): one for name, one in weights.tensors}
    set_peft_model_state_dict(model, renamed)


def in_precision(dtype: torch.dtype) -> Load:
    """Load all weights, rounded to a precision, and compute in bfloat16."""

    def load(model: Any, weights: Any) -> None:
        model.to(torch.bfloat16).load_state_dict({name: one.to(dtype) for name, one in named_weights(weights)})

    return load


def with_engine(load: Load, takes: str = "weights") -> Callable[[pytest.MonkeyPatch, float], None]:
    """A change that registers the engine ``NAME``."""

    def make(model: Any, tokenizer: Any, *, max_rows: int, seed: int, options: Mapping[str, Any]) -> CopiedEngine:
        return CopiedEngine(model, tokenizer, load, takes, max_rows=max_rows, seed=seed)

    @checked
    def no_options() -> None: ...

    kind = EngineKind("a copy of the policy", make, shares_weights=False, takes=lambda: no_options)
    return lambda patched, strength: patched.setitem(ENGINES._parts, NAME, kind)
