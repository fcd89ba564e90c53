"""What a selector is: it chooses which episodes of a group are trained on, once their rewards are known.

A selector is a pure function of the group and a random generator; it never looks at text. It may also tell when an
unfinished group has enough episodes. Not covered: playing more episodes until a group is worth training on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from rstar2_env.core.episode import Episode, Group
from rstar2_env.core.own_code import Shape, is_class_with
from rstar2_env.core.registry import Registry


class Selector(Protocol):
    """Chooses which episodes of one group are trained on."""

    def __call__(self, group: Group, keep: int, rng: np.random.Generator) -> list[int]:
        """Return the positions of at most ``keep`` episodes in ascending order; none if the group is rejected.

        Episodes that are not ``available`` must never be chosen.

        Args:
            group: The episodes of the group.
            keep: Largest number of episodes to choose.
            rng: Source of random draws.
        """
        ...


@runtime_checkable
class Settles(Protocol):
    """Optional method of a selector that can tell when a group has enough episodes."""

    def settled(self, group: Sequence[Episode | None], keep: int) -> bool:
        """Whether the rest of the group may be cancelled; ``None`` stands for an episode that still plays."""
        ...


SELECTORS: Registry[type[Selector]] = Registry(
    "selector",
    "rstar2_env.trainers.selectors",
    "rstar2_env.selectors",
    shape=Shape(is_class_with("__call__"), "a class whose objects are called with (group, keep, rng)"),
)


def all_equal(group: Sequence[Episode]) -> bool:
    """Whether all rewards are equal; such a group has only advantages of zero."""
    return len({episode.reward for episode in group}) <= 1
