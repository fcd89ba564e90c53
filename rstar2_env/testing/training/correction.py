"""``check_correction``: checks that token weights depend only on the mismatch between engine and trainer."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from rstar2_env.core.options.parts import PartSpec
from rstar2_env.testing.harness import require
from rstar2_env.testing.runner import run_checks
from rstar2_env.testing.training.lookup import maker
from rstar2_env.testing.training.loss import NEEDS
from rstar2_env.testing.training.token_batches import changed, spoiled, token_batch

_CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class CorrectionHarness:
    """One correction under test.

    Attributes:
        make: Makes a new correction.
    """

    make: Callable[[], Any]

    def batch(self, seed: int = 0) -> Any:
        """Make a micro-batch with only the tensors that the correction declares."""
        torch = importlib.import_module("torch")
        needs = self.make().needs
        tokens = token_batch(seed, needs=frozenset(needs))
        return tokens if "old" in needs else changed(tokens, old=torch.full_like(tokens.old, torch.nan))


def declarations(harness: CorrectionHarness) -> None:
    """``needs`` is a frozenset of known needs."""
    needs: Any = getattr(harness.make(), "needs", None)
    require(isinstance(needs, frozenset), f"needs is {needs!r}; declare a frozenset, empty if it needs nothing more")
    require(needs <= NEEDS, f"it needs {sorted(map(str, needs - NEEDS))}; known are {', '.join(sorted(NEEDS))}")


def weights(harness: CorrectionHarness) -> None:
    """It returns (B, T) finite weights >= 0 without a gradient, also if engine and trainer differ strongly."""
    torch = importlib.import_module("torch")
    tokens = harness.batch()
    for shift in (0.0, -50.0, 50.0):
        far = changed(tokens, sampled=tokens.sampled + shift)
        found: Any = harness.make()(far)
        right = isinstance(found, torch.Tensor) and found.shape == tokens.mask.shape
        told = tuple(getattr(found, "shape", ())) or type(found).__name__
        require(right, f"it returned {told}; return one weight per token, {tuple(tokens.mask.shape)}")
        own = found[tokens.mask]
        where = f" where the engine's log-probabilities differ by {shift:g}" if shift else ""
        require(bool((own.isfinite() & (own >= 0)).all()), f"a weight is negative or not finite{where}")
        require(not found.requires_grad, "its weights have a gradient; compute them of old, or detach logp")


def agreement(harness: CorrectionHarness) -> None:
    """If engine and trainer agree, every weight is 1."""
    torch = importlib.import_module("torch")
    tokens = harness.batch()
    same = {"old": tokens.sampled} if "old" in harness.make().needs else {}
    found = harness.make()(changed(tokens, logp=tokens.sampled.clone().requires_grad_(), **same))[tokens.mask]
    require(torch.allclose(found, torch.ones_like(found), rtol=1e-6), f"where they agree, a weight is {found[0]:g}")


def masking(harness: CorrectionHarness) -> None:
    """Values outside the mask, in padding or environment tokens, do not change the weights of policy tokens."""
    torch = importlib.import_module("torch")
    tokens = harness.batch()
    one, other = (harness.make()(each)[tokens.mask] for each in (tokens, spoiled(tokens, tokens.mask)))
    same = torch.allclose(one, other, rtol=_CLOSE, atol=_CLOSE)
    require(same, "other numbers outside the mask change a weight; use tokens.log_mismatch and tokens.pooled")


def advantages(harness: CorrectionHarness) -> None:
    """The advantage does not change a weight, unless the correction declares that it reads the advantage."""
    if getattr(harness.make(), "reads_advantage", False):
        return
    torch = importlib.import_module("torch")
    tokens = harness.batch()
    turned = changed(tokens, advantage=-3 * tokens.advantage)
    same = torch.equal(harness.make()(tokens)[tokens.mask], harness.make()(turned)[tokens.mask])
    require(same, "other advantages change a weight")


def rows_apart(harness: CorrectionHarness) -> None:
    """A row's weights do not depend on the other rows of its micro-batch."""
    torch = importlib.import_module("torch")
    tokens = harness.batch()
    together = harness.make()(tokens)
    for row in range(len(tokens.mask)):
        cut = {
            name: value[row : row + 1]
            for name in type(tokens).__dataclass_fields__
            if isinstance(value := getattr(tokens, name), torch.Tensor)
        }
        alone = harness.make()(changed(tokens, **cut))[0][tokens.mask[row]]
        same = torch.allclose(alone, together[row][tokens.mask[row]], rtol=_CLOSE, atol=_CLOSE)
        require(same, f"alone in its micro-batch, row {row} has other weights")


def pickling(harness: CorrectionHarness) -> None:
    """Its pickle returns the same weights."""
    torch = importlib.import_module("torch")
    tokens, part = harness.batch(), harness.make()
    twin = pickle.loads(pickle.dumps(part))
    require(torch.equal(part(tokens)[tokens.mask], twin(tokens)[tokens.mask]), "its pickle returns other weights")


CORRECTION_CHECKS: Mapping[str, Callable[[CorrectionHarness], None]] = MappingProxyType(
    {check.__name__: check for check in (declarations, weights, agreement, masking, advantages, rows_apart, pickling)}
)
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
    what, make = maker("correction", correction, options)
    make()  # errors about the options are raised unchanged
    return run_checks(f"The correction {what}", CORRECTION_CHECKS, CorrectionHarness(make), skip=skip)
