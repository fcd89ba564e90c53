"""``check_correction``: checks that token weights depend only on the mismatch between engine and trainer."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from rstar2_env.core.options.parts import PartSpec
from rstar2_env.testing.harness import require
from rstar2_env.testing.runner import by_name
from rstar2_env.testing.training.lookup import check_part, pickled, torch
from rstar2_env.testing.training.token_batches import (
    changed,
    check_needs,
    check_shape,
    close,
    declared_batch,
    one_row,
    spoiled,
)


@dataclass(frozen=True, slots=True)
class CorrectionHarness:
    """One correction under test.

    Attributes:
        make: Makes a new correction.
    """

    make: Callable[[], Any]

    def batch(self, seed: int = 0) -> Any:
        """Make a micro-batch with only the tensors that the correction declares."""
        return declared_batch(self.make(), seed)


def declarations(harness: CorrectionHarness) -> None:
    """``needs`` is a frozenset of known needs."""
    check_needs(harness.make())


def weights(harness: CorrectionHarness) -> None:
    """It returns (B, T) finite weights >= 0 without a gradient, also if engine and trainer differ strongly."""
    tokens = harness.batch()
    for shift in (0.0, -50.0, 50.0):
        far = changed(tokens, sampled=tokens.sampled + shift)
        found: Any = harness.make()(far)
        check_shape(found, tokens, "weight")
        own = found[tokens.mask]
        where = f" if the engine's log-probabilities differ by {shift:g}" if shift else ""
        require(bool((own.isfinite() & (own >= 0)).all()), f"a weight is negative or not finite{where}")
        require(
            not found.requires_grad, "its weights have a gradient; compute them from tokens.old, or detach tokens.logp"
        )


def agreement(harness: CorrectionHarness) -> None:
    """If engine and trainer agree, every weight is 1."""
    tokens = harness.batch()
    same = {"old": tokens.sampled} if "old" in harness.make().needs else {}
    found = harness.make()(changed(tokens, logp=tokens.sampled.clone().requires_grad_(), **same))[tokens.mask]
    ones = torch.allclose(found, torch.ones_like(found), rtol=1e-6)
    require(ones, f"if engine and trainer agree, a weight is {found[0]:g} instead of 1")


def masking(harness: CorrectionHarness) -> None:
    """Values outside the mask, in padding or environment tokens, do not change the weights of policy tokens."""
    tokens = harness.batch()
    one, other = (harness.make()(each)[tokens.mask] for each in (tokens, spoiled(tokens, tokens.mask)))
    require(
        close(one, other), "other numbers outside the mask change a weight; use tokens.log_mismatch and tokens.pooled"
    )


def advantages(harness: CorrectionHarness) -> None:
    """The advantage does not change a weight, unless the correction declares that it reads the advantage."""
    if getattr(harness.make(), "reads_advantage", False):
        return
    tokens = harness.batch()
    turned = changed(tokens, advantage=-3 * tokens.advantage)
    same = torch.equal(harness.make()(tokens)[tokens.mask], harness.make()(turned)[tokens.mask])
    require(same, "other advantages change a weight")


def rows_apart(harness: CorrectionHarness) -> None:
    """A row's weights do not depend on the other rows of its micro-batch."""
    tokens = harness.batch()
    together = harness.make()(tokens)
    for row in range(len(tokens.mask)):
        alone = harness.make()(one_row(tokens, row))[0][tokens.mask[row]]
        same = close(alone, together[row][tokens.mask[row]])
        require(same, f"alone in its micro-batch, row {row} has other weights")


def pickling(harness: CorrectionHarness) -> None:
    """Its pickle returns the same weights."""
    tokens, part = harness.batch(), harness.make()
    same = torch.equal(part(tokens)[tokens.mask], pickled(part)(tokens)[tokens.mask])
    require(same, "its pickle returns other weights")


CORRECTION_CHECKS = by_name(declarations, weights, agreement, masking, advantages, rows_apart, pickling)
"""Every check by its name; the first line of each docstring is the clause."""


def check_correction(correction: PartSpec | object, *, skip: Collection[str] = (), **options: Any) -> list[str]:
    """Check a correction against its contract (docs/add-a-trainer.md). Needs torch, and no pytest.

    Args:
        correction: A name as a recipe writes it (``"truncate:cap=3"``, ``"./mine.py:Name"``), a class, or the
            correction itself.
        skip: Names of checks to leave out; see ``rstar2_env.testing.CORRECTION_CHECKS``.
        **options: Options of the correction, when it is given as a name or a class.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The correction breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: There is no correction of that name, or ``skip`` contains a name that is not a check.
        ConfigurationError: The options do not fit.
    """
    return check_part("correction", correction, options, CORRECTION_CHECKS, CorrectionHarness, skip=skip)
