"""The protocol of selectors, which choose the episodes of a group to train on once their rewards are known.

A selector is a function of the group and a random generator; it never reads the episodes' texts. If it chooses no
episode, the group is rejected; if the run has refill rounds, the collector plays another group instead. A selector can
have optional methods, each in a protocol of this module: to end a group early, to report reasons and numbers, and to
adapt from step to step. In the last case, its state is saved in checkpoints (``state_dict`` and ``load_state_dict``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from rstar2_env.core.episode import Episode, Group
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.user_code import Shape, is_called_with

from ..samplers.base import GroupResult

EQUAL = 1e-9
"""Rewards whose range is at most this share of the largest absolute value count as equal up to rounding."""


class Selector(Protocol):
    """Chooses the episodes of one group to train on."""

    def __call__(self, group: Group, keep: int, rng: np.random.Generator) -> list[int]:
        """Return the positions of at most ``keep`` episodes in ascending order; an empty list rejects the group.

        Episodes that are not ``available`` must never be chosen.

        Args:
            group: The episodes of the group.
            keep: Maximum number of episodes to choose.
            rng: Source of random draws.
        """
        ...


@runtime_checkable
class Settles(Protocol):
    """Protocol of a selector that can decide before all episodes have ended whether a group has enough episodes."""

    def settled(self, group: Sequence[Episode | None], keep: int) -> bool:
        """Return whether the unfinished episodes of the group, given as ``None``, can be cancelled."""
        ...


@runtime_checkable
class AdaptsToResults(Protocol):
    """Protocol of a selector that adapts to the results of a step's groups."""

    def observe(self, outcomes: Sequence[GroupResult]) -> None:
        """Receive the results of a step's groups from all processes, in the order of ``GroupResult.group``.

        Rejected groups are included. The method is called in every process with the same arguments, after the selection
        from the last group of the step.
        """
        ...


@runtime_checkable
class Reasons(Protocol):
    """Protocol of a selector that can explain why it excluded an episode."""

    def reasons(self, group: Group, keep: int, chosen: Sequence[int]) -> Mapping[int, str]:
        """Return, for the position of each episode that was not chosen, a word that states the reason.

        Words in use:

        - ``unavailable`` and ``cancelled``: the episode's end;
        - ``equal``: all rewards of the group are equal;
        - ``quota``: the quota of right or wrong episodes was full;
        - ``penalty``: other episodes have a lower penalty;
        - ``order``: the chosen episodes have the same penalty, but earlier positions in the group;
        - ``draw``: other episodes were drawn at random;
        - ``band``, ``deviation`` and ``few``: a group filter rejected the group for this reason;
        - ``rejected``: the group was rejected for another reason;
        - ``unselected``: other episodes of the group were chosen, for a reason that the selector does not report.

        Args:
            group: The episodes of the group.
            keep: Maximum number of episodes to choose.
            chosen: The positions that the selector returned.
        """
        ...


@runtime_checkable
class Weighs(Protocol):
    """Protocol of a selector that can report the numbers on which it bases its choice."""

    def weighed(self, group: Group, keep: int) -> Mapping[int, Mapping[str, float]]:
        """Return, for each episode's position in the group, the finite numbers on which the choice is based, by name.

        The run's folder records them. The method is called directly after the choice, before the selector's state
        changes. Names in use:

        - ``penalty`` and its parts ``tool_errors`` and ``format``;
        - ``chance``: the episode's probability in the first draw or, if the selector has importance weights, its
          probability of being kept;
        - ``quota``: the number of successes or failures to keep;
        - ``pass_rate``, ``deviation`` or ``counted``: the number that a group filter compares with its bounds;
        - ``low`` and ``high``, ``threshold`` or ``least``: these bounds.

        Args:
            group: The episodes of the group.
            keep: Maximum number of episodes to choose.
        """
        ...


@runtime_checkable
class ImportanceWeights(Protocol):
    """Protocol of a selector that corrects the bias of its choice by importance weights."""

    def weights(self, group: Group, keep: int, chosen: Sequence[int]) -> Sequence[float] | None:
        """Return the factor of the advantage of each chosen episode, or ``None`` to change no advantage.

        If there are factors, the advantages are computed from all available episodes of the group, and each chosen
        episode's advantage is then multiplied by its factor. The method is called directly after the choice, before
        the selector's state changes.

        Args:
            group: The episodes of the group.
            keep: Maximum number of episodes to choose.
            chosen: The chosen positions, without those of episodes that have no tokens to train on.
        """
        ...


SELECTORS: Registry[Callable[..., Selector]] = Registry(
    "selector",
    "rstar2_env.trainers.selectors",
    "rstar2_env.selectors",
    shape=Shape(is_called_with(3), "a class whose objects are called with (group, keep, rng), or a function of them"),
)


def all_equal(group: Sequence[Episode]) -> bool:
    """Return whether all rewards of a group are equal up to rounding."""
    rewards = [episode.reward for episode in group]
    return not rewards or max(rewards) - min(rewards) <= EQUAL * max(map(abs, rewards))


def plain_reasons(group: Sequence[Episode], chosen: Sequence[int], otherwise: str) -> dict[int, str]:
    """Return the reason for each episode that was not chosen, by its position; any selector can use this function.

    Args:
        group: The episodes of the group.
        chosen: Positions of the chosen episodes.
        otherwise: The reason for an episode that could have been chosen.
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
