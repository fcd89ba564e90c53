"""The fused head of a model: TRL's, which besides gives the mean of the log-probabilities of the whole vocabulary.

TRL folds the vocabulary in tiles, and gives the mean of the logits. What it subtracts from a logit to get a
log-probability, the logarithm of the normaliser, it keeps for the backward pass alone; here it is taken from there, so
that the mean costs no tile more. Tested with TRL 1.16.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import wraps
from types import MethodType
from typing import Any

from trl.kernels import ChunkedLogProbFunction
from trl.trainer import utils

from rstar2_env.core.errors import Rstar2Error

_NAMES = {"entropy": "entropy", "mean_logp": "mean_logits", "sum_squares": "log_sum_sq_probs"}
"""What TRL calls the outputs."""
_SAVED = ("hidden", "weight", "bias", "targets", "log_z", "entropy")
"""What TRL's function keeps for its backward pass."""


class _WithMeanLogp(ChunkedLogProbFunction):
    """TRL's function, with the mean of the log-probabilities in the place of that of the logits."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        """See ``ChunkedLogProbFunction``."""
        logps, entropy, squares, mean, top = ChunkedLogProbFunction.forward(ctx, *args)
        if len(ctx.to_save) != len(_SAVED):
            raise Rstar2Error(
                "This version of TRL keeps something else for the backward pass of its fused head than TRL 1.16, so "
                "the mean of the log-probabilities cannot be computed: install trl 1.16."
            )
        mean = mean - ctx.to_save[_SAVED.index("log_z")]
        ctx.mark_non_differentiable(*(one for one in (squares, mean, top) if one is not None))
        return logps, entropy, squares, mean, top


def put_head(model: Any, temperature: float, outputs: Collection[str], *, cast: bool = False) -> None:
    """Put the head on a model, in place of one that it may have.

    Args:
        model: A causal language model, unwrapped.
        temperature: Temperature of the log-probabilities.
        outputs: What is computed beside them: ``entropy``, ``mean_logp`` (as ``mean_logits`` of the output), and
            ``sum_squares`` (as ``log_sum_sq_probs``).
        cast: Whether to compute the logits in float32, whatever the precision is elsewhere.
    """
    # A head wraps the forward pass that it finds; the class's own is the one without a head.
    model.forward = type(model).forward.__get__(model)
    utils.add_fused_lm_head(
        model,
        temperature=temperature,
        cast_lm_head_to_fp32=cast,
        outputs=("log_probs", *(_NAMES[name] for name in outputs)),
    )
    if "mean_logp" in outputs:
        model.forward = _with_mean_logp(model)


def _with_mean_logp(model: Any) -> Any:
    forward = model.forward

    @wraps(type(model).forward)
    def called(_: Any, *args: Any, **kwargs: Any) -> Any:
        # TRL's forward pass takes its function from the module, at each call.
        before = utils._ChunkedLogProbFunction
        utils._ChunkedLogProbFunction = _WithMeanLogp
        try:
            return forward(*args, **kwargs)
        finally:
            utils._ChunkedLogProbFunction = before

    return MethodType(called, model)
