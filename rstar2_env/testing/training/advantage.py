"""``check_advantage``: checks that advantages depend on the episodes alone, and not on their split over processes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.parts import PartSpec
from rstar2_env.testing.harness import require
from rstar2_env.testing.randomness import untouched
from rstar2_env.testing.runner import by_name
from rstar2_env.testing.training.examples import group_of
from rstar2_env.testing.training.lookup import check_part, pickled
from rstar2_env.testing.training.processes import in_processes

Groups = list[list[Episode]]
Values = list[list[Any]]

REWARDS = (
    (1.0, 0.0, 1.0, 0.0),
    (0.0, 0.0, 0.0, 1.0, 0.0),
    (0.25, 1.0, 0.5, 0.0, 0.75, -0.5),
    (0.1, 0.1, 0.1),
    (1.0, 0.0),
    (1.0, 1.0, 0.0, 1.0),
)
"""Rewards of the example batch: a tuple for each group."""
_CLOSE = 1e-9


@dataclass(frozen=True, slots=True)
class AdvantageHarness:
    """One advantage estimator under test.

    Attributes:
        make: Function that makes a new estimator.
        zero_when_equal: Whether every advantage must be zero if all rewards of a batch are equal.
    """

    make: Callable[[], Any]
    zero_when_equal: bool

    def batch(self) -> Groups:
        """Return the trainable episodes of the example batch, group by group."""
        return [group_of(rewards, number=number) for number, rewards in enumerate(REWARDS)]

    def values(self, groups: Sequence[Sequence[Episode]], estimator: Any = None, processes: int = 1) -> Values:
        """Return the advantages of groups, in order; each process gets a consecutive, possibly empty block of groups.

        Args:
            groups: The groups of episodes.
            estimator: The estimator; ``None`` makes a new one for each process.
            processes: Number of simulated processes.
        """
        share = max(1, (len(groups) + processes - 2) // max(1, processes - 1)) if processes > 1 else len(groups)
        blocks = [groups[rank * share : (rank + 1) * share] for rank in range(processes)] if groups else [groups]
        found = in_processes(len(blocks), lambda ranks: (estimator or self.make())(blocks[ranks.rank], ranks))
        return [group for block in found for group in block]


def shapes(harness: AdvantageHarness) -> None:
    """Check that each episode gets a finite number, or an array with one number per completion token."""
    groups = harness.batch()
    values: Any = harness.values(groups)
    require(isinstance(values, list), f"it returned {type(values).__name__}, not a list of lists")
    require(len(values) == len(groups), f"for {len(groups)} groups, it returned the advantages of {len(values)}")
    for number, (group, own) in enumerate(zip(groups, values, strict=True)):
        require(
            len(own) == len(group), f"group {number} has {len(group)} episodes, but it returned {len(own)} advantages"
        )
        for episode, value in zip(group, own, strict=True):
            shape, tokens = np.shape(value), len(episode.completion_ids)
            require(
                shape in ((), (tokens,)),
                f"an advantage has the shape {shape}; return a number or an array of shape ({tokens},)",
            )
            require(np.isfinite(value).all(), f"an advantage in group {number} is {value!r:.80}, which is not finite")


def edges(harness: AdvantageHarness) -> None:
    """Check that the estimator accepts zero groups, a group without an episode, and groups of one episode."""
    require(harness.values([]) == [], "for zero groups, it returned advantages")
    for groups in ([group_of(())], [group_of((1.0,))], [group_of((1.0, 0.0)), group_of((), number=1)]):
        values = harness.values(groups)
        require(
            [len(own) for own in values] == [len(group) for group in groups],
            "for small groups, it did not return one advantage per episode",
        )
        require(
            all(np.isfinite(one).all() for own in values for one in own), "an advantage in a small group is not finite"
        )


def processes(harness: AdvantageHarness) -> None:
    """Check that the advantages do not depend on the split of groups over processes, even if a process has no group."""
    groups = harness.batch()
    expected = harness.values(groups)
    for count in (2, 3, 4):
        found = harness.values(groups, processes=count)
        _require_same(
            found, expected, f"on {count} processes, the advantages differ from the advantages on one process"
        )


def order(harness: AdvantageHarness) -> None:
    """Check that the order of the groups, and of the episodes in a group, does not matter."""
    groups = harness.batch()
    expected = harness.values(groups)
    reordered = [list(reversed(group)) for group in reversed(groups)]
    back = [list(reversed(own)) for own in reversed(harness.values(reordered))]
    _require_same(back, expected, "if the episodes are in another order, an episode has a different advantage")


def better_is_higher(harness: AdvantageHarness) -> None:
    """Check that if two episodes differ only in their rewards, the better episode has the higher advantage."""
    (worse,) = group_of((0.0,))
    better = copy.deepcopy(worse)
    better.reward, better.correct, better.steps[-1].reward = 1.0, True, 1.0
    low, high = (float(np.sum(value)) for value in harness.values([[worse, better]])[0])
    require(high > low, f"rewards of 0 and 1 give the advantages {low:g} and {high:g}, which do not increase")


def equal_rewards(harness: AdvantageHarness) -> None:
    """Check that if all rewards of the batch are equal, every advantage is exactly zero, despite rounding."""
    if not harness.zero_when_equal:
        return
    for reward in (0.0, 1.0, 0.1, 1 / 3):
        groups = [group_of((reward,) * count, number=number) for number, count in enumerate((3, 7, 10))]
        zero = all(not np.any(value) for own in harness.values(groups) for value in own)
        require(zero, f"if every reward is {reward:g}, an advantage is not zero")


def purity(harness: AdvantageHarness) -> None:
    """Check that the estimator does not change the episodes, and, if it has no state, that it repeats its result."""
    groups = harness.batch()
    before = copy.deepcopy(groups)
    estimator = harness.make()
    with untouched():
        first = harness.values(groups, estimator)
    require(groups == before, "it changed the episodes")
    if not hasattr(estimator, "state_dict"):
        _require_same(harness.values(groups, estimator), first, "a second call returns different advantages")


def pickling(harness: AdvantageHarness) -> None:
    """Check that a pickled copy of the estimator returns the same advantages."""
    groups = harness.batch()
    _require_same(
        harness.values(groups, pickled(harness.make())),
        harness.values(groups),
        "its unpickled copy returns different advantages",
    )


ADVANTAGE_CHECKS = by_name(shapes, edges, processes, order, better_is_higher, equal_rewards, purity, pickling)
"""Checks by name; the first line of a check's docstring describes the check."""


def check_advantage(
    advantage: PartSpec | object, *, zero_when_equal: bool = True, skip: Collection[str] = (), **options: Any
) -> list[str]:
    """Check an advantage estimator against its contract (docs/part-interfaces.md). Needs no pytest and no torch.

    Args:
        advantage: A name as a recipe writes it (``"group_norm:eps=1e-6"``, ``"./mine.py:Name"``), a class, or the
            estimator itself, an object or a function.
        zero_when_equal: Whether equal rewards must give zero advantages; false for an estimator without a baseline.
        skip: Names of checks to leave out; see ``rstar2_env.testing.ADVANTAGE_CHECKS``.
        **options: Options of the estimator, when it is given as a name or a class.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The estimator breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: There is no estimator with this name, or ``skip`` contains a name that is not a check.
        ConfigurationError: An option is unknown or invalid.
    """
    harness = partial(AdvantageHarness, zero_when_equal=zero_when_equal)
    return check_part("advantage", advantage, options, ADVANTAGE_CHECKS, harness, skip=skip)


def _require_same(values: Values, expected: Values, message: str) -> None:
    for number, (own, others) in enumerate(zip(values, expected, strict=True)):
        for member, (value, other) in enumerate(zip(own, others, strict=True)):
            same = np.shape(value) == np.shape(other) and np.allclose(value, other, rtol=_CLOSE, atol=_CLOSE)
            require(same, f"{message}: episode {member} of group {number} has {value!r:.60} and {other!r:.60}")
