"""``check_correction``: checks that token weights depend only on the mismatch between engine and trainer."""

from __future__ import annotations

from collections.abc import Callable, Collection
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

Make = Callable[[], Any]
"""Function that makes a new correction."""


def declarations(make: Make) -> None:
    """Check that ``needs`` is a frozenset of names that a correction may declare, such as ``old``."""
    check_needs(make())


def weights(make: Make) -> None:
    """Check that the (B, T) weights are finite, >= 0 and without a gradient, even if the mismatch is large."""
    tokens = declared_batch(make())
    for shift in (0.0, -50.0, 50.0):
        far = changed(tokens, sampled=tokens.sampled + shift)
        found: Any = make()(far)
        check_shape(found, tokens, "weight")
        own = found[tokens.mask]
        where = f" if the engine's log-probabilities differ by {shift:g}" if shift else ""
        require(bool((own.isfinite() & (own >= 0)).all()), f"a weight is negative or not finite{where}")
        require(
            not found.requires_grad, "its weights have a gradient; compute them from tokens.old, or detach tokens.logp"
        )


def agreement(make: Make) -> None:
    """Check that every weight is 1 if the probabilities of engine and trainer are equal."""
    tokens = declared_batch(make())
    same = {"old": tokens.sampled} if "old" in make().needs else {}
    found = make()(changed(tokens, logp=tokens.sampled.clone().requires_grad_(), **same))[tokens.mask]
    ones = torch.allclose(found, torch.ones_like(found), rtol=1e-6)
    require(ones, f"if engine and trainer agree, a weight is {found[0]:g} instead of 1")


def masking(make: Make) -> None:
    """Check that values outside the mask (padding, environment tokens) do not change weights of policy tokens."""
    tokens = declared_batch(make())
    one, other = (make()(each)[tokens.mask] for each in (tokens, spoiled(tokens, tokens.mask)))
    require(
        close(one, other), "a weight depends on numbers outside the mask; use tokens.log_mismatch and tokens.pooled"
    )


def advantages(make: Make) -> None:
    """Check that the weights do not depend on the advantage, unless the correction declares that they do."""
    if getattr(make(), "reads_advantage", False):
        return
    tokens = declared_batch(make())
    turned = changed(tokens, advantage=-3 * tokens.advantage)
    same = torch.equal(make()(tokens)[tokens.mask], make()(turned)[tokens.mask])
    require(same, "a weight depends on the advantages")


def rows_apart(make: Make) -> None:
    """Check that a row's weights do not depend on the other rows of its micro-batch."""
    tokens = declared_batch(make())
    together = make()(tokens)
    for row in range(len(tokens.mask)):
        alone = make()(one_row(tokens, row))[0][tokens.mask[row]]
        same = close(alone, together[row][tokens.mask[row]])
        require(same, f"if row {row} is alone in its micro-batch, its weights are different")


def pickling(make: Make) -> None:
    """Check that a pickled copy of the correction returns the same weights."""
    tokens, part = declared_batch(make()), make()
    same = torch.equal(part(tokens)[tokens.mask], pickled(part)(tokens)[tokens.mask])
    require(same, "its unpickled copy returns different weights")


CORRECTION_CHECKS = by_name(declarations, weights, agreement, masking, advantages, rows_apart, pickling)
"""Checks by name; the first line of a check's docstring describes the check."""


def check_correction(correction: PartSpec | object, *, skip: Collection[str] = (), **options: Any) -> list[str]:
    """Check a correction against its contract (docs/part-interfaces.md). Needs torch, and no pytest.

    Args:
        correction: A name as a recipe writes it (``"truncate:cap=3"``, ``"./mine.py:Name"``), a class, or the
            correction itself.
        skip: Names of checks to leave out; see ``rstar2_env.testing.CORRECTION_CHECKS``.
        **options: Options of the correction, when it is given as a name or a class.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The correction breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: There is no correction with this name, or ``skip`` contains a name that is not a check.
        ConfigurationError: An option is unknown or invalid.
    """
    return check_part("correction", correction, options, CORRECTION_CHECKS, lambda make: make, skip=skip)
