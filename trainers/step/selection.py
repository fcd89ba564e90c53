"""Selection of one group: the checked choice of the selector, and the reason why each other episode does not train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError

from ..selectors.base import Reasons, Selector, Weighs, plain_reasons

NO_TOKENS, ALONE = "no_tokens", "alone"


def select(
    group: Sequence[Episode],
    selector: Selector,
    keep: int,
    rng: np.random.Generator,
    least: int = 1,
    apart: Sequence[int] = (),
) -> tuple[list[int], list[str]]:
    """Choose which episodes of a group train.

    Args:
        group: The episodes of the group, scored.
        selector: Chooses the episodes.
        keep: Maximum number of episodes to choose.
        rng: Source of the selector's draws.
        least: Minimum number of episodes with which the group trains.
        apart: Positions of episodes that train separately and are not shown to the selector.

    Returns:
        The positions of episodes that train, ascending; and for each episode the reason why it does not train ("" if it
        does).

    Raises:
        ConfigurationError: The selector made an invalid choice.
    """
    if apart:
        shown = [position for position in range(len(group)) if position not in set(apart)]
        own, own_reasons = select([group[position] for position in shown], selector, keep, rng, least)
        reasons = [""] * len(group)
        for position, reason in zip(shown, own_reasons, strict=True):
            reasons[position] = reason
        return [shown[place] for place in own], reasons
    chosen = [int(position) for position in selector(group, keep, rng)]
    _check(group, selector, keep, chosen)
    if isinstance(selector, Reasons):
        given = selector.reasons(group, keep, chosen)
    else:
        given = plain_reasons(group, chosen, "unselected")
    reasons = [given.get(position, "unselected") for position in range(len(group))]
    for position in chosen:
        reasons[position] = "" if group[position].policy_tokens else NO_TOKENS
    kept = [position for position in chosen if not reasons[position]]
    if len(kept) < least:
        for position in kept:
            reasons[position] = ALONE
        kept = []
    return kept, reasons


def weigh(
    group: Sequence[Episode], selector: Selector, keep: int, apart: Sequence[int] = ()
) -> dict[int, Mapping[str, float]]:
    """Return the numbers by which a selector chooses in a group, by position; none if it does not report them.

    Args:
        group: The episodes of the group, scored.
        selector: Chooses the episodes.
        keep: Maximum number of episodes to choose.
        apart: Positions that are not shown to the selector.
    """
    if not isinstance(selector, Weighs):
        return {}
    shown = [position for position in range(len(group)) if position not in set(apart)]
    weighed = selector.weighed([group[position] for position in shown], keep)
    return {shown[place]: numbers for place, numbers in weighed.items() if numbers}


def _check(group: Sequence[Episode], selector: Selector, keep: int, chosen: Sequence[int]) -> None:
    name = type(selector).__name__
    if len(chosen) > keep or any(not 0 <= position < len(group) for position in chosen):
        raise ConfigurationError(
            f"The selector {name} must choose at most {keep} positions from 0 to {len(group) - 1}, not {list(chosen)}."
        )
    if any(one >= other for one, other in pairwise(chosen)):
        raise ConfigurationError(f"The selector {name} must return ascending positions, not {list(chosen)}.")
    if lost := [position for position in chosen if not group[position].available]:
        raise ConfigurationError(
            f"The selector {name} chose the episodes {lost}, which ended as unavailable or cancelled: choose "
            "only episodes that are `available`."
        )
