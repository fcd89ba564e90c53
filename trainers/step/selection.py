"""Selects the episodes of a group to train on, and finds the reason why each other episode is not trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError

from ..selectors.base import ImportanceWeights, Reasons, Selector, Weighs, plain_reasons

NO_TOKENS, ALONE = "no_tokens", "alone"


def select(
    group: Sequence[Episode],
    selector: Selector,
    keep: int,
    rng: np.random.Generator,
    least: int = 1,
    apart: Sequence[int] = (),
) -> tuple[list[int], list[str]]:
    """Choose the episodes of a group to train on.

    Args:
        group: The episodes of the group, scored.
        selector: Chooses the episodes.
        keep: Maximum number of episodes to choose.
        rng: Source of the selector's draws.
        least: Minimum number of episodes to train on; a group with fewer is rejected.
        apart: Positions of episodes that are trained on separately, and that the selector does not see.

    Returns:
        The chosen positions, ascending; and for each episode the reason why it is not trained on ("" if it is).

    Raises:
        ConfigurationError: The selector made an invalid choice.
    """
    shown, own = _without(group, apart)
    chosen = [int(place) for place in selector(own, keep, rng)]
    _check(own, selector, keep, chosen)
    if isinstance(selector, Reasons):
        given = selector.reasons(own, keep, chosen)
    else:
        given = plain_reasons(own, chosen, "unselected")
    reasons = [""] * len(group)
    for place, position in enumerate(shown):
        reasons[position] = given.get(place, "unselected")
    for place in chosen:
        reasons[shown[place]] = "" if own[place].policy_tokens else NO_TOKENS
    kept = [shown[place] for place in chosen if own[place].policy_tokens]
    if len(kept) < least:
        for position in kept:
            reasons[position] = ALONE
        kept = []
    return kept, reasons


def weigh(
    group: Sequence[Episode], selector: Selector, keep: int, apart: Sequence[int] = ()
) -> dict[int, Mapping[str, float]]:
    """Return the numbers on which a selector bases its choice, by position; empty if it does not report them.

    Args:
        group: The episodes of the group, scored.
        selector: Chooses the episodes.
        keep: Maximum number of episodes to choose.
        apart: Positions of episodes that the selector does not see.
    """
    if not isinstance(selector, Weighs):
        return {}
    shown, own = _without(group, apart)
    return {shown[place]: numbers for place, numbers in selector.weighed(own, keep).items() if numbers}


def importance_weights(
    group: Sequence[Episode], selector: Selector, keep: int, kept: Sequence[int], apart: Sequence[int] = ()
) -> dict[int, float]:
    """Return the factor of each kept episode's advantage, by position; empty if the selector computes no factors.

    Args:
        group: The episodes of the group, scored.
        selector: Chose the episodes.
        keep: Maximum number of episodes to choose.
        kept: Positions of the episodes to train on.
        apart: Positions of episodes that the selector does not see.

    Raises:
        ConfigurationError: The selector did not return one positive finite factor for each episode.
    """
    if not isinstance(selector, ImportanceWeights) or not kept:
        return {}
    shown, own = _without(group, apart)
    places = [shown.index(position) for position in kept]
    found = selector.weights(own, keep, places)
    if found is None:
        return {}
    # Episodes without tokens count in the group's numbers, but are not compared.
    available = [episode for episode in own if episode.available]
    scale = len(available) / sum(episode.policy_tokens > 0 for episode in available)
    factors = [float(factor) * scale for factor in found]
    if len(factors) != len(kept) or not all(0 < factor < inf for factor in factors):
        raise ConfigurationError(
            f"The selector {type(selector).__name__} must return one positive finite weight for each of "
            f"the {len(kept)} episodes that it chose, not {factors}."
        )
    return dict(zip(kept, factors, strict=True))


def _without(group: Sequence[Episode], apart: Sequence[int]) -> tuple[list[int], list[Episode]]:
    """Return the positions and the episodes of a group that its selector sees."""
    shown = [position for position in range(len(group)) if position not in set(apart)]
    return shown, [group[position] for position in shown]


def _check(group: Sequence[Episode], selector: Selector, keep: int, chosen: Sequence[int]) -> None:
    name = type(selector).__name__
    if len(chosen) > keep or any(not 0 <= position < len(group) for position in chosen):
        raise ConfigurationError(
            f"The selector {name} must choose at most {keep} episodes, by their positions from 0 to "
            f"{len(group) - 1}; it chose {list(chosen)}."
        )
    if any(one >= other for one, other in pairwise(chosen)):
        raise ConfigurationError(
            f"The selector {name} must return the positions of the chosen episodes in ascending order, not "
            f"{list(chosen)}."
        )
    if lost := [position for position in chosen if not group[position].available]:
        raise ConfigurationError(
            f"The selector {name} chose the episodes {lost}, which could not be played (they were "
            "unavailable or cancelled): it must choose only episodes whose attribute `available` is true."
        )
