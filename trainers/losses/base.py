"""What the loss is made of: terms, an aggregation over rows, and a correction of the engine's probabilities.

The loss of an optimizer step is the sum, over all rows of all processes, of the row's weight (the aggregation) times
the sum over its policy tokens of all terms added up, where terms that are policy gradients are multiplied by the
correction. Terms about the environment's tokens are summed over those instead, with weights that the aggregation gives
for their numbers. Its parts use the methods of the tensors that they are given, and import no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.own_code import Shape, is_class_with
from rstar2_env.core.options.registry import Registry

from .batch_tokens import BatchTokens
from .tokens import Tokens

if TYPE_CHECKING:
    from torch import Tensor

    from ..ranks import Ranks

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
Need = Literal["old", "reference", "teacher", "entropy", "mean_logp", "environment", "embedding"]
"""What a part of the loss may need that costs a pass of its own, or memory."""
ENVIRONMENT: Need = "environment"
"""The need of a term that is about the environment's tokens: its losses count there, and not on the policy's."""
Figures: TypeAlias = "dict[str, tuple[Tensor, Tensor]]"
"""Sum and count of each metric, scalars on the device: sums of micro-batches and processes add up, means do not."""


class Term(Protocol):
    """One term of the loss.

    Attributes:
        needs: What it reads of ``Tokens`` beyond ``logp``, ``sampled``, ``advantage``, ``mask``, ``turn``, ``depth``
            and ``columns``.
            With ``"environment"`` it is about the tokens of the environment, and nothing on the policy's.
        policy_gradient: Whether it is the advantage times something: it is then multiplied by the correction, and
            nothing where the advantage is zero.

    A policy gradient whose ratio is against ``sampled`` has the correction in it, and says ``corrected = False``: it is
    not multiplied by another.
    """

    @property
    def needs(self) -> frozenset[Need]:
        """See ``Term``."""
        ...

    @property
    def policy_gradient(self) -> bool:
        """See ``Term``."""
        ...

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the loss of each token, (B, T); what it is off the mask, or off the environment, does not count."""
        ...


class Aggregation(Protocol):
    """How the losses of tokens become one number: the weight of a token, which depends on its row."""

    def __call__(self, lengths: IntArray, groups: IntArray, ranks: Ranks) -> FloatArray:
        """Return the weight of a policy token of each row.

        Args:
            lengths: Policy tokens of each row of the optimizer batch on this process, (rows,); for terms about the
                environment's tokens their numbers. Rows with an advantage of zero are among them, rows that only keep
                processes in step are not; a row without such a token counts as none.
            groups: Number of the group that each row belongs to, unique over all processes, (rows,).
            ranks: The processes; all of them call together.

        Returns:
            Weights, (rows,). The loss is the sum of weight times term over all tokens of all rows of all processes.
        """
        ...


class Correction(Protocol):
    """Weights of tokens that correct for what the engine computes otherwise than the trainer.

    Attributes:
        needs: As of ``Term``; one that compares ``old`` with ``sampled`` needs ``"old"``.

    One whose weights depend on the advantage says ``reads_advantage = True``.
    """

    @property
    def needs(self) -> frozenset[Need]:
        """See ``Correction``."""
        ...

    def __call__(self, tokens: Tokens) -> Tensor:
        """Return the weight of each token, (B, T), without a gradient; 0 drops the token."""
        ...


@runtime_checkable
class Prepares(Protocol):
    """Optional method of a term that compares a token with others of the whole optimizer batch.

    For such a term, the log-probabilities of all rows are computed once more before each optimizer step.
    """

    def prepare(self, batch: BatchTokens, ranks: Ranks, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return columns, (tokens,) each, which ``Tokens.columns`` then has in every micro-batch.

        Args:
            batch: The policy's tokens of this process.
            ranks: The processes; all of them call together, also those without a token.
            rng: In the same state on every process.
        """
        ...


@runtime_checkable
class Measures(Protocol):
    """Optional method of a part: metrics that it logs, and that ``observe`` is given."""

    def figures(self, tokens: Tokens) -> Figures:
        """Return sum and count of each metric over the policy's tokens of a micro-batch."""
        ...


@runtime_checkable
class Adapts(Protocol):
    """Optional methods of a part that changes from step to step; its state is saved with every checkpoint."""

    def observe(self, figures: Mapping[str, tuple[float, float]]) -> None:
        """Learn the sums and counts of an optimizer step, those of ``figures`` added up over all processes."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return the state as JSON-compatible values."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        ...


def needs_of(terms: Sequence[Term], correction: Correction) -> frozenset[Need]:
    """Everything that a loss needs."""
    return frozenset[Need]().union(correction.needs, *(term.needs for term in terms))


def is_corrected(term: Term) -> bool:
    """Whether the correction multiplies a term."""
    return term.policy_gradient and bool(getattr(term, "corrected", True))


def prepared(
    terms: Sequence[Term], batch: BatchTokens, ranks: Ranks, rng: np.random.Generator
) -> dict[str, FloatArray]:
    """The columns of all terms that prepare; see ``Prepares``.

    Raises:
        ConfigurationError: Two terms prepare a column of the same name.
    """
    columns: dict[str, FloatArray] = {}
    for term in terms:
        if isinstance(term, Prepares):
            own = term.prepare(batch, ranks, rng)
            twice = columns.keys() & own.keys()
            if twice:
                raise ConfigurationError(
                    f"Two terms of the loss prepare the column {min(twice)!r}: name the term only once, or give the "
                    "columns of your own term other names."
                )
            columns |= own
    return columns


def token_losses(tokens: Tokens, terms: Sequence[Term], weights: Tensor) -> Tensor:
    """All terms about the policy's tokens added up, (B, T), 0 off the mask.

    Args:
        tokens: The micro-batch.
        terms: The terms of the loss.
        weights: What the correction gave for these tokens.
    """
    total = tokens.logp.new_zeros(tokens.logp.shape)
    for term in terms:
        if ENVIRONMENT not in term.needs:
            loss = term(tokens)
            total = total + (loss * weights if is_corrected(term) else loss)
    return total.masked_fill(~tokens.mask, 0.0)


def environment_losses(tokens: Tokens, terms: Sequence[Term]) -> Tensor:
    """All terms about the environment's tokens added up, (B, T), 0 elsewhere."""
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
