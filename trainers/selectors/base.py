"""What a selector is: it chooses which episodes of a group are trained on, once their rewards are known.

A selector is a function of the group and a random generator; it never looks at text. It may also tell when an
unfinished group has enough episodes, tell why it left an episode out and by which numbers it chose, and learn from step
to step: ``observe`` is told how the groups of all processes went, and what it keeps of that goes into checkpoints
(``state_dict`` and ``load_state_dict``). A group of which it chooses nothing is rejected; a run with rounds of refill
plays another one in its place, which is the collector's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from rstar2_env.core.episode import Episode, Group
from rstar2_env.core.options.own_code import Shape, is_called_with
from rstar2_env.core.options.registry import Registry

from ..samplers.base import Outcome

EQUAL = 1e-9
"""Rewards whose range is at most this share of the largest absolute one differ by rounding alone."""


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


@runtime_checkable
class Observes(Protocol):
    """Optional method of a selector that learns how the groups of a step went."""

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Learn from a step: the groups of all processes, rejected ones too, in the order of ``Outcome.group``.

        It is called on every process alike, after the last group of the step was selected.
        """
        ...


@runtime_checkable
class Reasons(Protocol):
    """Optional method of a selector that can tell why it left an episode out."""

    def reasons(self, group: Group, keep: int, chosen: Sequence[int]) -> Mapping[int, str]:
        """Return a word for the position of each episode that was not chosen, and of no other.

        Words in use: ``unavailable`` and ``cancelled`` (how it ended), ``equal`` (all rewards of the group are),
        ``quota`` (there was no room for its kind), ``penalty`` (others had a lower one), ``draw`` (others were drawn),
        ``band``, ``deviation`` and ``few`` (what its group has too little of for a filter of groups).

        Args:
            group: The episodes of the group.
            keep: Largest number of episodes to choose.
            chosen: What the selector returned for them.
        """
        ...


@runtime_checkable
class Weighs(Protocol):
    """Optional method of a selector that can tell the numbers by which it chooses."""

    def weighed(self, group: Group, keep: int) -> Mapping[int, Mapping[str, float]]:
        """Return finite numbers by name for the positions of episodes that it weighs; the run's folder keeps them.

        It is asked right after the choice, in the same state. Names in use: ``penalty`` with its parts ``tool_errors``
        and ``format``; ``chance``, the share of an episode's weight in the first draw; ``quota``, how many of its kind
        are kept; ``pass_rate``, ``deviation`` and ``counted``, what a filter of groups looks at, beside its bounds.

        Args:
            group: The episodes of the group.
            keep: Largest number of episodes to choose.
        """
        ...


SELECTORS: Registry[Callable[..., Selector]] = Registry(
    "selector",
    "rstar2_env.trainers.selectors",
    "rstar2_env.selectors",
    shape=Shape(is_called_with(3), "a class whose objects are called with (group, keep, rng), or a function of them"),
)


def all_equal(group: Sequence[Episode]) -> bool:
    """Whether all rewards are equal but for rounding; such a group has only advantages of zero."""
    rewards = [episode.reward for episode in group]
    return not rewards or max(rewards) - min(rewards) <= EQUAL * max(map(abs, rewards))


def plain_reasons(group: Sequence[Episode], chosen: Sequence[int], otherwise: str) -> dict[int, str]:
    """Why each episode that was not chosen does not train, by its position; all that can be said of any selector.

    Args:
        group: The episodes of the group.
        chosen: Positions of those that train.
        otherwise: The reason of an episode that could have been chosen.
    """
    usable = [episode for episode in group if episode.available]
    rejected = "equal" if all_equal(usable) else "rejected"
    kept = set(chosen)
    left_out = otherwise if kept else rejected
    return {
        position: left_out if episode.available else episode.end
        for position, episode in enumerate(group)
        if position not in kept
    }
