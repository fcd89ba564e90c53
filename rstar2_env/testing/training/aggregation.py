"""``check_aggregation``: checks that the weights of rows do not depend on how the rows are split over processes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rstar2_env.core.options.parts import PartSpec
from rstar2_env.testing.harness import require
from rstar2_env.testing.runner import by_name
from rstar2_env.testing.training.lookup import check_part, pickled
from rstar2_env.testing.training.processes import in_processes

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LENGTHS = np.array([5, 1, 12, 0, 7, 7, 3, 40, 2], dtype=np.int64)
"""Number of policy tokens in each row of a batch; one row has none."""
GROUPS = np.array([0, 0, 0, 1, 1, 1, 2, 2, 7], dtype=np.int64)
_CLOSE = 1e-12


@dataclass(frozen=True, slots=True)
class AggregationHarness:
    """One aggregation under test.

    Attributes:
        make: Function that makes a new aggregation.
    """

    make: Callable[[], Any]

    def weights(self, lengths: Ints = LENGTHS, groups: Ints = GROUPS, processes: int = 1, part: Any = None) -> Floats:
        """Compute the weight of each row; rows are assigned to processes round-robin.

        Args:
            lengths: Number of policy tokens of each row.
            groups: Number of the group of each row.
            processes: Number of simulated processes.
            part: The aggregation; ``None`` makes a new one for each process.
        """

        def own(ranks: Any) -> Any:
            mine = slice(ranks.rank, None, processes)
            return (part or self.make())(lengths[mine].copy(), groups[mine].copy(), ranks)

        found = np.zeros(len(lengths))
        for rank, weights in enumerate(in_processes(processes, own)):
            found[rank::processes] = weights
        return found


def shape(harness: AggregationHarness) -> None:
    """Check that each row gets one finite weight: 0 if the row has no policy tokens, else more than 0."""
    found: Any = in_processes(1, lambda ranks: harness.make()(LENGTHS.copy(), GROUPS.copy(), ranks))[0]
    right = isinstance(found, np.ndarray) and found.shape == LENGTHS.shape
    require(right, f"it returned {found!r:.80}; return a NumPy array of shape (rows,)")
    require(bool(np.isfinite(found).all() and (found >= 0).all()), f"a weight is negative or not finite: {found}")
    require(
        not found[LENGTHS == 0].any(), f"a row without a token has the weight {found[LENGTHS == 0][0]} instead of 0"
    )
    require(bool((found[LENGTHS > 0] > 0).all()), f"a row with tokens has the weight 0: {found}")


def processes(harness: AggregationHarness) -> None:
    """Check that the weights do not depend on the split of rows over processes, even if a process has no row."""
    expected = harness.weights()
    for count in (2, 3, 4, len(LENGTHS) + 1):
        found = harness.weights(processes=count)
        same = np.allclose(found, expected, rtol=_CLOSE, atol=0)
        require(same, f"on {count} processes the weights are {found.round(6)}, on one {expected.round(6)}")


def order(harness: AggregationHarness) -> None:
    """Check that the weights do not depend on the order of the rows or on how the groups are numbered."""
    expected = harness.weights()
    turned = harness.weights(LENGTHS[::-1], GROUPS[::-1])[::-1]
    require(np.allclose(turned, expected, rtol=_CLOSE, atol=0), "the weight of a row depends on the order of the rows")
    renamed = harness.weights(groups=100 - 3 * GROUPS)
    require(np.allclose(renamed, expected, rtol=_CLOSE, atol=0), "the weight of a row depends on the ids of the groups")


def copies(harness: AggregationHarness) -> None:
    """Check that if every row of a batch occurs twice, the weights are halved, since the loss is a mean."""
    twice = harness.weights(np.tile(LENGTHS, 2), np.concatenate([GROUPS, GROUPS + 100]))
    expected = np.tile(harness.weights(), 2) / 2
    require(np.allclose(twice, expected, rtol=_CLOSE, atol=0), "if every row is repeated, the weights are not halved")


def empty_batch(harness: AggregationHarness) -> None:
    """Check that rows without tokens have zero weights, and that a batch without rows causes no error."""
    for lengths in (np.zeros(3, dtype=np.int64), np.zeros(0, dtype=np.int64)):
        found = harness.weights(lengths, np.zeros(len(lengths), dtype=np.int64))
        require(not found.any(), f"for {len(lengths)} rows without a token, the weights are {found}")


def purity(harness: AggregationHarness) -> None:
    """Check that the aggregation does not change its arguments, and returns the same result if it is called again."""
    lengths, groups, part = LENGTHS.copy(), GROUPS.copy(), harness.make()
    first, again = (in_processes(1, lambda ranks: part(lengths, groups, ranks))[0] for _ in range(2))
    require(np.array_equal(lengths, LENGTHS) and np.array_equal(groups, GROUPS), "it changed its arguments")
    require(np.array_equal(first, again), "a second call returns different weights")


def pickling(harness: AggregationHarness) -> None:
    """Check that a pickled copy of the aggregation returns the same weights."""
    require(
        np.array_equal(harness.weights(part=pickled(harness.make())), harness.weights()),
        "its unpickled copy returns different weights",
    )


AGGREGATION_CHECKS = by_name(shape, processes, order, copies, empty_batch, purity, pickling)
"""Checks by name; the first line of a check's docstring describes the check."""


def check_aggregation(aggregation: PartSpec | object, *, skip: Collection[str] = (), **options: Any) -> list[str]:
    """Check an aggregation against its contract (docs/part-interfaces.md). Needs no pytest and no torch.

    Args:
        aggregation: A name as a recipe writes it (``"const_len:length=4096"``, ``"./mine.py:Name"``), a class, or the
            aggregation itself, an object or a function.
        skip: Names of checks to leave out; see ``rstar2_env.testing.AGGREGATION_CHECKS``.
        **options: Options of the aggregation, when it is given as a name or a class.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The aggregation breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: There is no aggregation with this name, or ``skip`` contains a name that is not a check.
        ConfigurationError: An option is unknown or invalid.
    """
    return check_part("aggregation", aggregation, options, AGGREGATION_CHECKS, AggregationHarness, skip=skip)
