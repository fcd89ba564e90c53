"""Extend TRL's fused head: return the mean log-probability over the vocabulary too, and compute faster on a CPU.

On an accelerator, TRL processes the vocabulary in tiles and returns the mean of the logits. It saves the logarithm of
the normalizer (a logit minus its log-probability) only for the backward pass. This module reads the saved logarithm, so
the mean log-probability needs no additional pass over the vocabulary. On a CPU, ``cpu_head`` computes log-probabilities
only of tokens with a label. The head runs a copy of TRL's forward method in which two global names are replaced. Tested
with TRL 1.16.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import update_wrapper, wraps
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor
from trl.kernels import ChunkedLogProbFunction
from trl.trainer import utils

from rstar2_env.core.errors import Rstar2Error

from .cpu_head import CpuLogProbs

_NAMES = {"entropy": "entropy", "mean_logp": "mean_logits", "sum_squares": "log_sum_sq_probs"}
"""TRL's name of each additional output of the head; see ``put_head``."""
_HEAD = "_rstar2_head"
"""Name of the model's attribute that holds the forward method of the model's current head."""
_SAVED = ("hidden", "weight", "bias", "targets", "log_z", "entropy")
"""Names of the values that ``ChunkedLogProbFunction`` saves for its backward pass, in their order."""


class _WithMeanLogp(ChunkedLogProbFunction):
    """``ChunkedLogProbFunction`` that returns the mean of the log-probabilities instead of the mean of the logits."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        """Compute the outputs with the mean log-probability; see ``ChunkedLogProbFunction``."""
        logps, entropy, squares, mean, top = ChunkedLogProbFunction.forward(ctx, *args)
        if mean is None:
            return logps, entropy, squares, mean, top
        if len(ctx.to_save) != len(_SAVED):
            raise Rstar2Error(
                "This version of TRL is not supported: its fused head (the output layer computed "
                "together with the loss) saves other values than the fused head of TRL 1.16. Install trl 1.16."
            )
        mean = mean - ctx.to_save[_SAVED.index("log_z")]
        ctx.mark_non_differentiable(*(one for one in (squares, mean, top) if one is not None))
        return logps, entropy, squares, mean, top


class _LogProbs:
    """Replaces ``_ChunkedLogProbFunction`` in TRL's forward method by a function that suits the device."""

    @staticmethod
    def apply(hidden: Tensor, *args: Any) -> Any:
        """Compute the outputs with ``CpuLogProbs`` on a CPU, otherwise with ``_WithMeanLogp``."""
        return (CpuLogProbs if hidden.device.type == "cpu" else _WithMeanLogp).apply(hidden, *args)


def _selects(device: torch.device) -> bool:
    """Whether the head skips tokens without a label: on a CPU always, else only with Triton, like TRL's own head."""
    return device.type == "cpu" or bool(utils._use_triton(device))


_REPLACED: dict[str, Any] = {"_ChunkedLogProbFunction": _LogProbs, "_use_triton": _selects}


def _replacing(method: FunctionType) -> FunctionType:
    """Return a copy of TRL's forward method in which ``_REPLACED`` replaces global names; TRL's own is unchanged."""
    if absent := _REPLACED.keys() - set(method.__code__.co_names):
        raise Rstar2Error(
            "This version of TRL is not supported: its fused head (the output layer computed together "
            f"with the loss) does not use {', '.join(sorted(absent))}, which the fused head of TRL 1.16 "
            "uses. Install trl 1.16."
        )
    found = FunctionType(
        method.__code__, {**vars(utils), **_REPLACED}, method.__name__, method.__defaults__, method.__closure__
    )
    found.__kwdefaults__ = method.__kwdefaults__
    update_wrapper(found, method)
    return found


def put_head(model: Any, temperature: float, outputs: Collection[str], *, cast: bool = False) -> None:
    """Put the head on a model, replacing an earlier one.

    Args:
        model: A causal language model, unwrapped.
        temperature: Temperature of the log-probabilities.
        outputs: Additional outputs: ``entropy``, ``mean_logp`` (named ``mean_logits`` in the model's output), and
            ``sum_squares`` (named ``log_sum_sq_probs``).
        cast: Whether to compute the logits in float32, independent of the precision elsewhere.
    """
    # TRL's head wraps the current forward method, so first restore the method of the class, which has no head.
    wrapped = model.forward if _HEAD in vars(model) else MethodType(_with_head(type(model)), model)
    model.forward = type(model).forward.__get__(model)
    utils.add_fused_lm_head(
        model,
        temperature=temperature,
        cast_lm_head_to_fp32=cast,
        outputs=("log_probs", *(_NAMES[name] for name in outputs)),
    )
    # accelerate's autocast wraps the forward method when training begins, and must stay when the head is replaced.
    setattr(model, _HEAD, MethodType(_replacing(model.forward.__func__), model))
    model.forward = wrapped


def _with_head(kind: type) -> Any:
    """Return a forward method for a model class; it calls the head that ``put_head`` last set on the model."""

    @wraps(kind.forward)  # type: ignore[attr-defined]  # the class of a model
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self, _HEAD)(*args, **kwargs)

    return forward
