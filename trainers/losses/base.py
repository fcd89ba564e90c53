"""The parts of the loss: terms, an aggregation over rows, and a correction of the engine's probabilities.

The loss of an optimizer step is a sum over all rows of all processes: the row's weight (from the aggregation) times the
sum of all terms over its policy tokens. Policy gradient terms are multiplied by the correction. Terms about the
environment's tokens are summed over the environment's tokens instead, and the aggregation computes the row weights from
the numbers of these tokens. The parts only use methods of the given tensors and do not import torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.user_code import Shape, is_class_with
from rstar2_env.core.row import FloatArray as FloatArray
from rstar2_env.core.row import IntArray as IntArray

from ..ranks import Ranks
from .batch_tokens import BatchTokens
from .tokens import RatioAnchor, Tensor, Tokens

LossInput = Literal["old", "reference", "teacher", "entropy", "mean_logp", "environment", "embedding"]
"""Optional inputs of the loss, which cost an extra forward pass or memory."""
ENVIRONMENT: LossInput = "environment"
"""A term that needs this input is computed on the environment's tokens instead of the policy's tokens."""
Figures: TypeAlias = "dict[str, tuple[Tensor, Tensor]]"
"""Sum and count of each metric, scalars on the device, which can be added over micro-batches and processes."""


class Term(Protocol):
    """Protocol of a term of the loss.

    Attributes:
        needs: Fields of ``Tokens`` that the term reads in addition to ``logp``, ``sampled``, ``advantage``, ``mask``,
            ``turn``, ``depth`` and ``columns``. A term with ``"environment"`` applies to the environment's tokens and
            is zero on the policy's.
        policy_gradient: Whether the term is proportional to the advantage. It is then multiplied by the correction, and
            rows with advantage zero are skipped.

    If the denominator of a policy gradient's ratio is ``sampled``, the ratio already contains the correction. Such a
    term sets ``corrected = False`` and is not multiplied by the correction.
    """

    @property
    def needs(self) -> frozenset[LossInput]:
        """Names of the inputs that the term needs; see ``Term``."""

    @property
    def policy_gradient(self) -> bool:
        """Whether the term is proportional to the advantage; see ``Term``."""

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); values on tokens that the term does not apply to are ignored."""


class Anchored:
    """Base class of policy gradient terms whose option ``anchor`` selects the denominator of the ratio.

    With ``anchor="sampled"`` the ratio contains the correction, so the correction does not multiply the term.
    """

    anchor: RatioAnchor
    policy_gradient: ClassVar[bool] = True

    @property
    def needs(self) -> frozenset[LossInput]:
        """Names of the inputs that the term needs; see ``Term``."""
        return frozenset({"old"} if self.anchor == "old" else ())

    @property
    def corrected(self) -> bool:
        """Whether the correction multiplies the term; see ``Term``."""
        return self.anchor == "old"


class Aggregation(Protocol):
    """Protocol of an aggregation: the average of token losses, given as one weight for all tokens of a row."""

    def __call__(self, lengths: IntArray, groups: IntArray, ranks: Ranks) -> FloatArray:
        """Return one weight per row; each policy token of the row has this weight.

        Args:
            lengths: Number of policy tokens in each row of the optimizer batch on this process, (rows,); for terms
                about the environment's tokens, the number of environment tokens. Rows with advantage zero are included;
                padding rows that keep processes in step are not. A row without such tokens does not count.
            groups: Group number of each row, unique over all processes, (rows,).
            ranks: The processes; all of them call this together.

        Returns:
            Weights, (rows,). The loss is the sum of weight times term over all tokens of all rows of all processes.
        """


class Correction(Protocol):
    """Token weights that correct for differences between the engine's and the trainer's probabilities.

    Attributes:
        needs: See ``Term``; a correction that compares ``old`` with ``sampled`` needs ``"old"``.

    A correction whose weights depend on the advantage sets ``reads_advantage = True``.
    """

    @property
    def needs(self) -> frozenset[LossInput]:
        """Names of the inputs that the correction needs; see ``Correction``."""

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the weight of each token, (B, T), without a gradient; 0 drops the token."""


@runtime_checkable
class Prepares(Protocol):
    """Protocol of a term that compares tokens across the whole optimizer batch.

    For such a term, the log-probabilities of all rows are computed again before each optimizer step.
    """

    def prepare(self, batch: BatchTokens, ranks: Ranks, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return columns of shape (tokens,) that are added to ``Tokens.columns`` in every micro-batch.

        Args:
            batch: The policy's tokens of this process.
            ranks: The processes; all of them call this together, including those without tokens.
            rng: Random generator, in the same state on every process.
        """


@runtime_checkable
class Measures(Protocol):
    """Protocol of a part with metrics, which are logged and passed to ``Adapts.observe``."""

    def figures(self, tokens: Tokens) -> Figures:
        """Return sum and count of each metric over the policy's tokens of a micro-batch."""


@runtime_checkable
class Adapts(Protocol):
    """Protocol of a part that changes from step to step; its state is saved with every checkpoint."""

    def observe(self, figures: Mapping[str, tuple[float, float]]) -> None:
        """Adapt to the metrics of an optimizer step: the sums and counts of ``figures`` over all processes."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state as JSON-compatible values."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state that ``state_dict`` returned."""


def needs_of(terms: Sequence[Term], correction: Correction) -> frozenset[LossInput]:
    """Return the names of all inputs that a loss's terms and its correction need."""
    return frozenset[LossInput]().union(correction.needs, *(term.needs for term in terms))


def is_corrected(term: Term) -> bool:
    """Return whether the correction multiplies a term."""
    return term.policy_gradient and bool(getattr(term, "corrected", True))


def prepared(
    terms: Sequence[Term], batch: BatchTokens, ranks: Ranks, rng: np.random.Generator
) -> dict[str, FloatArray]:
    """Return the columns prepared by all terms; see ``Prepares``.

    Raises:
        ConfigurationError: Two terms prepare columns with the same name.
    """
    columns: dict[str, FloatArray] = {}
    for term in terms:
        if isinstance(term, Prepares):
            own = term.prepare(batch, ranks, rng)
            twice = columns.keys() & own.keys()
            if twice:
                raise ConfigurationError(
                    f"Two terms of the loss prepare the column {min(twice)!r}: name the term only once, "
                    "or rename the columns of your own term."
                )
            columns |= own
    return columns


def token_losses(tokens: Tokens, terms: Sequence[Term], weights: Tensor) -> Tensor:
    """Return the sum of all terms that are computed on the policy's tokens, (B, T); 0 on other tokens.

    Args:
        tokens: The micro-batch.
        terms: The terms of the loss.
        weights: The correction's weights for these tokens.
    """
    total = tokens.logp.new_zeros(tokens.logp.shape)
    for term in terms:
        if ENVIRONMENT not in term.needs:
            loss = term(tokens)
            total = total + (loss * weights if is_corrected(term) else loss)
    return total.masked_fill(~tokens.mask, 0.0)


def environment_losses(tokens: Tokens, terms: Sequence[Term]) -> Tensor:
    """Return the sum of all terms that are computed on the environment's tokens, (B, T); 0 on other tokens."""
    total = tokens.logp.new_zeros(tokens.logp.shape)
    for term in terms:
        if ENVIRONMENT in term.needs:
            total = total + term(tokens)
    return total.masked_fill(~tokens.environment, 0.0)


_PACKAGE = "rstar2_env.trainers.losses"
_called = is_class_with("__call__")

LOSSES: Registry[Callable[..., Term]] = Registry(
    "loss term",
    _PACKAGE,
    "rstar2_env.losses",
    shape=Shape(lambda value: _called(value) and hasattr(value, "policy_gradient"), "a class with policy_gradient"),
    listed_by="rstar2 list parts loss",
)
AGGREGATIONS: Registry[Callable[..., Aggregation]] = Registry(
    "aggregation",
    _PACKAGE,
    "rstar2_env.aggregations",
    shape=Shape(_called, "a class whose objects are called with (lengths, groups, ranks)"),
)
CORRECTIONS: Registry[Callable[..., Correction]] = Registry(
    "correction",
    _PACKAGE,
    "rstar2_env.corrections",
    shape=Shape(
        lambda value: _called(value) and hasattr(value, "needs") and not hasattr(value, "policy_gradient"),
        "a class with needs, whose objects are called with tokens",
    ),
)
