"""``check_loss``: checks which tokens a loss term reads, and the direction of the term's gradient."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rstar2_env.core.options.parts import PartSpec
from rstar2_env.testing.harness import require
from rstar2_env.testing.runner import by_name
from rstar2_env.testing.training.batch_of_tokens import GROUPS, LENGTHS, drawn, in_line, of_tokens
from rstar2_env.testing.training.lookup import check_part, pickled, resumed, torch
from rstar2_env.testing.training.processes import in_processes
from rstar2_env.testing.training.token_batches import (
    changed,
    check_needs,
    check_shape,
    close,
    declared_batch,
    leaves,
    one_row,
    spoiled,
)

_CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class LossHarness:
    """One term of a loss under test.

    Attributes:
        make: Function that makes a new term.
        columns: Names of the additional columns of the training rows that the term reads.
    """

    make: Callable[[], Any]
    columns: Collection[str]

    def batch(self, term: Any, seed: int = 0, *, on_policy: bool = False) -> Any:
        """Make a micro-batch with the tensors that every term gets, and those that this term declares in ``needs``."""
        tokens = declared_batch(term, seed, on_policy=on_policy)
        draw = torch.Generator().manual_seed(seed)
        columns = {name: torch.rand(tokens.mask.shape, generator=draw, dtype=torch.float64) for name in self.columns}
        return self.prepared(term, changed(tokens, columns=columns))

    def prepared(self, term: Any, tokens: Any) -> Any:
        """Return the micro-batch with the columns that ``prepare`` computes, as if it were the whole batch."""
        if not hasattr(term, "prepare"):
            return tokens
        one = importlib.import_module("rstar2_env.trainers.ranks").ONE
        columns = dict(tokens.columns)
        for name, values in term.prepare(of_tokens(tokens), one, np.random.default_rng(0)).items():
            columns[name] = torch.zeros(tokens.mask.shape, dtype=torch.float64)
            columns[name][tokens.mask] = torch.from_numpy(np.asarray(values, dtype=np.float64))
        return changed(tokens, columns=columns)

    def counted(self, term: Any, tokens: Any) -> Any:
        """Return the mask of the term's tokens: environment tokens if it needs ``environment``, else policy tokens."""
        return tokens.environment if "environment" in term.needs else tokens.mask

    def total(self, term: Any, tokens: Any) -> Any:
        """Return the sum of the term over the tokens to which it applies."""
        return term(tokens).masked_fill(~self.counted(term, tokens), 0.0).sum()


def declarations(harness: LossHarness) -> None:
    """Check that ``needs`` is a frozenset of names that a term may declare, and ``policy_gradient`` a bool.

    A term that applies to the environment's tokens must not declare ``policy_gradient``.
    """
    term = harness.make()
    check_needs(term)
    declared = getattr(term, "policy_gradient", None)
    require(
        isinstance(declared, bool),
        f"policy_gradient is {declared!r}; set it to True if the term multiplies the advantage, or else to False",
    )
    both = declared and "environment" in term.needs
    require(not both, "it declares policy_gradient, but applies to the environment's tokens, which have no advantage")


def shape(harness: LossHarness) -> None:
    """Check that the term returns finite losses of shape (B, T), even if probability ratios are extreme."""
    for seed in range(3):
        term = harness.make()
        tokens = harness.batch(term, seed)
        loss: Any = term(tokens)
        check_shape(loss, tokens, "loss")
        finite = bool(loss[harness.counted(term, tokens)].isfinite().all())
        require(finite, "the loss of a token inside the mask is not finite")
    for shift in (-30.0, 30.0):
        term = harness.make()
        tokens = harness.batch(term)
        far = harness.prepared(term, changed(tokens, old=tokens.old + shift))
        loss = harness.total(term, far)
        slopes = torch.autograd.grad(loss, leaves(far), allow_unused=True) if loss.requires_grad else ()
        finite = bool(loss.isfinite()) and all(slope is None or bool(slope.isfinite().all()) for slope in slopes)
        require(
            finite, f"at a probability ratio of e^{-shift:g}, the loss or its gradient is not finite; clamp the ratio"
        )


def needs_suffice(harness: LossHarness) -> None:
    """Check that the term reads only tensors that every term gets or that it declares in ``needs``, such as ``old``."""
    term = harness.make()
    try:
        loss = term(harness.batch(term))
    except Exception as error:
        raise AssertionError(
            f"given only what it declares ({', '.join(sorted(term.needs)) or 'nothing'}), the term raised "
            f"{type(error).__name__}: {error}"
        ) from error
    finite = bool(loss[harness.counted(term, harness.batch(term))].isfinite().all())
    require(finite, 'it reads tokens.old, but "old" is not in its needs, so the trainer does not compute it')
    require(isinstance(loss, torch.Tensor), f"it returned {type(loss).__name__}")


def masking(harness: LossHarness) -> None:
    """Check that values outside the term's tokens, such as padding, change neither loss nor gradient."""
    term = harness.make()
    tokens = harness.batch(term)
    counted = harness.counted(term, tokens)
    slopes = []
    for each in (tokens, spoiled(tokens, counted)):
        loss = harness.total(term, each)
        found = torch.autograd.grad(loss, leaves(each), allow_unused=True)
        for slope in found:
            off = slope is None or slope.shape != counted.shape or not slope[~counted].any()
            require(off, "a token outside the mask has a gradient: it reaches the loss through other tokens")
        slopes.append((loss.detach(), *(slope for slope in found if slope is not None)))
    for one, other in zip(*slopes, strict=True):
        require(
            close(one, other),
            "the loss depends on numbers outside the mask; use tokens.pooled, or fill with tokens.mask",
        )


def rows_apart(harness: LossHarness) -> None:
    """Check that a row's losses do not depend on the other rows of its micro-batch, nor on the padding to its right."""
    term = harness.make()
    whole = harness.batch(term)
    together, counted = term(whole).detach(), harness.counted(term, whole)
    for row in range(len(whole.mask)):
        width = int(whole.mask[row].nonzero().max()) + 1
        alone = term(one_row(whole, row, width)).detach()
        mask = counted[row, :width]
        same = close(alone[0][mask], together[row, :width][mask])
        require(same, f"if row {row} is alone in its micro-batch, its loss is different")


def trains(harness: LossHarness) -> None:
    """Check that the term has a gradient; a policy gradient must be 0 at advantage 0 and have the right sign."""
    term = harness.make()
    tokens = harness.batch(term, on_policy=True)
    if not term.policy_gradient:
        if not getattr(term, "coef", 1.0):
            return
        tokens = harness.batch(term)
        loss = harness.total(term, tokens)
        require(loss.requires_grad, "its loss has no gradient; do not detach tokens.logp")
        slopes = torch.autograd.grad(loss, leaves(tokens), allow_unused=True)
        require(any(slope is not None and bool(slope.any()) for slope in slopes), "its loss has no gradient")
        return
    if "old" in term.needs:
        tokens = changed(tokens, old=tokens.logp.detach())
    tokens = changed(tokens, sampled=tokens.logp.detach())
    loss = harness.total(term, tokens)
    require(loss.requires_grad, "its loss has no gradient; do not detach tokens.logp")
    (slope,) = torch.autograd.grad(loss, tokens.logp)
    good, bad = tokens.mask & (tokens.advantage > 0), tokens.mask & (tokens.advantage < 0)
    if hasattr(term, "prepare"):
        require(bool(slope.any()), "its method `prepare` leaves out every token")
        good, bad = good & (slope != 0), bad & (slope != 0)
    require(bool((slope[good] < 0).all()), "if the advantage is positive, a higher log-prob does not lower the loss")
    require(bool((slope[bad] > 0).all()), "if the advantage is negative, a higher log-prob does not raise the loss")
    none = changed(tokens, advantage=torch.zeros_like(tokens.advantage))
    zero = term(none)
    (slope,) = torch.autograd.grad(zero.masked_fill(~none.mask, 0.0).sum(), none.logp, allow_unused=True)
    require(
        not bool(zero[none.mask].any()),
        "it declares policy_gradient, but its loss is not zero where the advantage is zero",
    )
    require(
        slope is None or not bool(slope.any()),
        "it declares policy_gradient, but its gradient is not zero where the advantage is zero",
    )


def preparing(harness: LossHarness) -> None:
    """Check that ``prepare``, if defined, returns columns that do not depend on the split of rows over processes."""
    term = harness.make()
    if not hasattr(term, "prepare"):
        return
    old, shares = "old" in term.needs, [(3,), (), (5, 8)]
    for seed in range(3):

        def prepare(shares: Sequence[Sequence[int]], ranks: Any, seed: int = seed) -> Any:
            batch = drawn(seed, old=old, groups=shares[ranks.rank])
            return harness.make().prepare(batch, ranks, np.random.default_rng(seed))

        whole, divided = (in_line(in_processes(len(each), partial(prepare, each))) for each in ([GROUPS], shares))
        require(
            whole.keys() == divided.keys() and bool(whole),
            f"`prepare` returns the columns {list(whole)} on one process and {list(divided)} on several",
        )
        for name, values in whole.items():
            right = np.shape(values) == (sum(LENGTHS),) and bool(np.isfinite(values).all())
            require(
                right, f"the column {name!r} must have one finite number for each policy token: shape ({sum(LENGTHS)},)"
            )
            same = np.allclose(values, divided[name], rtol=_CLOSE, atol=_CLOSE)
            require(same, f"on several processes, the column {name!r} differs; sum and gather over ranks")


def figures(harness: LossHarness) -> None:
    """Check that ``figures``, if defined, gives each metric as a sum and a count over the term's tokens, detached."""
    term = harness.make()
    if not hasattr(term, "figures"):
        return
    tokens = harness.batch(term)
    found: Any = term.figures(tokens)
    other = term.figures(spoiled(tokens, harness.counted(term, tokens)))
    for name, pair in found.items():
        require(isinstance(pair, tuple) and len(pair) == 2, f"the metric {name!r} is not a pair of sum and count")
        for value, same in zip(pair, other[name], strict=True):
            require(not getattr(value, "requires_grad", False), f"the metric {name!r} has a gradient; detach it")
            number = torch.as_tensor(value).double()
            require(number.ndim == 0 and bool(number.isfinite()), f"the metric {name!r} is not a finite scalar")
            require(
                close(number, torch.as_tensor(same).double()),
                f"the metric {name!r} depends on numbers outside the mask",
            )


def state(harness: LossHarness) -> None:
    """Check that ``state_dict``, if defined, can be stored as JSON, and that a new instance can continue from it."""
    term = harness.make()
    if not hasattr(term, "state_dict"):
        return
    tokens = harness.batch(term)
    for _ in range(3):
        figures = term.figures(tokens) if hasattr(term, "figures") else {}
        term.observe({name: (float(total), float(count)) for name, (total, count) in figures.items()})
    term.observe({})
    other = resumed(term, harness.make())
    counted = harness.counted(term, tokens)
    same = torch.equal(term(tokens)[counted], other(tokens)[counted])
    require(same, "a term that loaded the state has a different loss")


def pickling(harness: LossHarness) -> None:
    """Check that a pickled copy of the term returns the same losses."""
    term = harness.make()
    tokens = harness.batch(term)
    counted = harness.counted(term, tokens)
    require(
        torch.equal(term(tokens)[counted], pickled(term)(tokens)[counted]),
        "its unpickled copy returns different losses",
    )


LOSS_CHECKS = by_name(
    declarations, shape, needs_suffice, masking, rows_apart, trains, preparing, figures, state, pickling
)
"""Checks by name; the first line of a check's docstring describes the check."""


def check_loss(
    term: PartSpec | object, *, columns: Collection[str] = (), skip: Collection[str] = (), **options: Any
) -> list[str]:
    """Check a term of a loss against its contract (docs/part-interfaces.md). Needs torch, and no pytest.

    Args:
        term: A name as a recipe writes it (``"ppo_clip:high=0.3"``, ``"./mine.py:Name"``), a class, or the term itself.
        columns: Names of the additional columns of the training rows that the term reads.
        skip: Names of checks to leave out; see ``rstar2_env.testing.LOSS_CHECKS``.
        **options: Options of the term, when it is given as a name or a class.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The term breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: There is no term with this name, or ``skip`` contains a name that is not a check.
        ConfigurationError: An option is unknown or invalid.
    """
    harness = partial(LossHarness, columns=tuple(columns))
    return check_part("loss", term, options, LOSS_CHECKS, harness, skip=skip, kind="loss term")
