"""``check_selector``: checks that a selector chooses only episodes on which a trainer may train."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.parts import PartSpec
from rstar2_env.testing.harness import require
from rstar2_env.testing.randomness import untouched
from rstar2_env.testing.runner import by_name
from rstar2_env.testing.training.examples import MIXTURES, group_of, outcomes_of
from rstar2_env.testing.training.lookup import check_part, pickled, resumed

KEEPS = (1, 2, 3, 4, 8, 12)
_SEED, _STEPS = 7, 12


@dataclass(frozen=True, slots=True)
class SelectorHarness:
    """One selector under test.

    Attributes:
        make: Function that makes a new selector.
    """

    make: Callable[[], Any]

    def cases(self) -> Iterator[tuple[str, list[Episode], int]]:
        """Yield a description, a group, and a number of episodes to keep, for every combination of group and number."""
        for name, rewards in MIXTURES.items():
            for keep in KEEPS:
                yield f"for the group {name!r} with keep={keep}", group_of(rewards), keep

    def choose(self, group: Sequence[Episode], keep: int, selector: Any = None) -> list[int]:
        """Return the positions in a group that a new selector, or the given selector, chooses."""
        chosen: list[int] = (selector or self.make())(group, keep, np.random.default_rng(_SEED))
        return chosen


def positions(harness: SelectorHarness) -> None:
    """Check that the selector returns ascending positions (from 0) in the group, at most ``keep`` of them."""
    for case, group, keep in harness.cases():
        chosen: Any = harness.choose(group, keep)
        whole = isinstance(chosen, list) and all(type(position) is int for position in chosen)
        require(whole, f"{case}, it returned {chosen!r:.80}; return a list of int (convert NumPy integers)")
        require(chosen == sorted(set(chosen)), f"{case}, it returned {chosen}, which is not strictly ascending")
        require(
            all(0 <= position < len(group) for position in chosen),
            f"{case}, it returned {chosen}, which contains a position outside of the group",
        )
        require(len(chosen) <= keep, f"{case}, it chose too many episodes: {len(chosen)}")


def available(harness: SelectorHarness) -> None:
    """Check that the selector chooses only episodes that are ``available``."""
    for case, group, keep in harness.cases():
        for position in harness.choose(group, keep):
            chosen = group[position]
            require(chosen.available, f"{case}, it chose the episode {position}, which ended with {chosen.end!r}")


def chooses(harness: SelectorHarness) -> None:
    """Check that the selector, if it may keep 4, chooses at least one episode of a group with unequal rewards."""
    for name in ("half right", "graded"):
        require(harness.choose(group_of(MIXTURES[name]), 4), f"for the group {name!r} with keep=4, it chose nothing")


def equal_rewards(harness: SelectorHarness) -> None:
    """Check that the selector rejects all groups with equal rewards, or none, as ``reject_equal`` specifies.

    A selector with ``ties = True`` belongs to an advantage that ranks correct answers, so groups in which all answers
    are right are not checked.
    """
    selector = harness.make()
    rejects = getattr(selector, "reject_equal", None)
    names = ("all wrong", "all wrong or unavailable", "all right")[: 2 if getattr(selector, "ties", False) else 3]
    taken = {name: bool(harness.choose(group_of(MIXTURES[name]), 4)) for name in names}
    if rejects is None:
        alike = len(set(taken.values())) == 1
        require(alike, f"it accepts some groups whose rewards are equal and rejects others: {taken}")
    else:
        require(
            set(taken.values()) == {not rejects},
            f"with reject_equal={rejects}, it chooses from these groups of equal rewards: {taken}",
        )


def purity(harness: SelectorHarness) -> None:
    """Check that the choice depends only on group and random generator, and changes no group and no global state."""
    for case, group, keep in harness.cases():
        before = copy.deepcopy(group)
        with untouched(case):
            first = harness.choose(group, keep)
        require(group == before, f"{case}, it changed the episodes")
        require(harness.choose(group, keep) == first, f"{case}, the same generator gives a different choice")


def settling(harness: SelectorHarness) -> None:
    """Check that ``settled``, if defined, is false before any episode has ended, and stays true once it is true."""
    selector = harness.make()
    if not hasattr(selector, "settled"):
        return
    for case, group, keep in harness.cases():
        ended: list[Episode | None] = [None] * len(group)
        before = False
        for position in np.random.default_rng(_SEED).permutation(len(group)):
            ended[position] = group[position]
            settled: Any = selector.settled(ended, keep)
            require(isinstance(settled, bool), f"{case}, `settled` returned {settled!r}")
            require(
                settled or not before,
                f"{case}, the group was settled, but is not settled after one more episode has ended",
            )
            before = settled
    group = group_of(MIXTURES["half right"])
    require(not selector.settled([None] * len(group), 4), "`settled` returns true before an episode has ended")


def reasons(harness: SelectorHarness) -> None:
    """Check that ``reasons``, if defined, returns a reason for each episode that is left out, and for no other."""
    for case, group, keep in harness.cases():
        selector = harness.make()
        if not hasattr(selector, "reasons"):
            return
        chosen = harness.choose(group, keep, selector)
        given: Any = selector.reasons(group, keep, chosen)
        require(isinstance(given, Mapping), f"{case}, `reasons` returned {given!r:.80}; return a dict by position")
        left = set(range(len(group))) - set(chosen)
        require(set(given) == left, f"{case}, it left out {sorted(left)} and gave reasons for {sorted(given)}")
        require(all(isinstance(why, str) and why for why in given.values()), f"{case}, a reason is not a str: {given}")


def weighed(harness: SelectorHarness) -> None:
    """Check that ``weighed``, if defined, returns a dict of finite numbers by position, and changes no episode."""
    for case, group, keep in harness.cases():
        selector = harness.make()
        if not hasattr(selector, "weighed"):
            return
        before = copy.deepcopy(group)
        told: Any = selector.weighed(group, keep)
        require(isinstance(told, Mapping), f"{case}, `weighed` returned {told!r:.80}; return a dict by position")
        outside = sorted(set(told) - set(range(len(group))))
        require(not outside, f"{case}, `weighed` returned positions out of range: {outside}")
        finite = all(
            isinstance(name, str) and isinstance(number, (int, float)) and math.isfinite(number)
            for numbers in told.values()
            for name, number in numbers.items()
        )
        require(finite, f"{case}, `weighed` returned {told!r:.80}; return finite numbers by name")
        require(group == before, f"{case}, `weighed` changed the episodes")


def pickling(harness: SelectorHarness) -> None:
    """Check that a pickled copy of the selector makes the same choice."""
    for case, group, keep in harness.cases():
        same = harness.choose(group, keep, pickled(harness.make())) == harness.choose(group, keep)
        require(same, f"{case}, its unpickled copy chooses differently")


def state(harness: SelectorHarness) -> None:
    """Check that ``state_dict``, if defined, can be stored as JSON, and that a new selector can continue from it.

    A selector that learns between steps (``observe``) must define ``state_dict``.
    """
    selector = harness.make()
    learns = hasattr(selector, "observe")
    if not hasattr(selector, "state_dict"):
        require(
            not learns,
            "it has observe, but no state_dict; add it, so that a resumed run makes the same choices",
        )
        return
    cases = list(harness.cases())
    for _ in range(_STEPS):
        for _, group, keep in cases:
            harness.choose(group, keep, selector)
        if learns:
            selector.observe(outcomes_of(list(MIXTURES.values())))
    other = resumed(selector, harness.make())
    for case, group, keep in cases:
        same = harness.choose(group, keep, selector) == harness.choose(group, keep, other)
        require(same, f"{case}, a selector that loaded the state chooses differently")


SELECTOR_CHECKS = by_name(
    positions, available, chooses, equal_rewards, purity, settling, reasons, weighed, pickling, state
)
"""Checks by name; the first line of a check's docstring describes the check."""


def check_selector(selector: PartSpec | object, *, skip: Collection[str] = (), **options: Any) -> list[str]:
    """Check a selector against its contract (docs/add-a-trainer.md). Needs no pytest and no torch.

    Args:
        selector: A name as a recipe writes it (``"roc:mode=rank"``, ``"./mine.py:Name"``), a class, or the selector
            itself, an object or a function.
        skip: Names of checks to leave out; see ``rstar2_env.testing.SELECTOR_CHECKS``.
        **options: Options of the selector, when it is given as a name or a class.

    Returns:
        The names of the checks that were made.

    Raises:
        ConformanceError: The selector breaks the contract; the message lists every clause that it breaks.
        UnknownNameError: There is no selector with this name, or ``skip`` contains a name that is not a check.
        ConfigurationError: An option is unknown or invalid.
    """
    return check_part("selector", selector, options, SELECTOR_CHECKS, SelectorHarness, skip=skip)
