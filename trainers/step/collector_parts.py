"""``CollectorParts``: the parts of a trainer that a collector works with, and whether they go together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Protocol

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.rewards.component import Component

from ..advantages.base import Advantage
from ..rollouts.base import Learns, Rollout, check_waits
from ..selectors.base import Selector, Settles
from .batch import Group


class CollectorParts(Protocol):
    """The parts of a trainer that a collector works with."""

    @property
    def rollout(self) -> Rollout:
        """Plays the groups."""
        ...

    @property
    def rewards(self) -> Sequence[Component]:
        """Score the episodes."""
        ...

    @property
    def selector(self) -> Selector:
        """Chooses the episodes of a group that train."""
        ...

    @property
    def advantage(self) -> Advantage:
        """Turns rewards into advantages."""
        ...


def check_parts(parts: CollectorParts, *, group_size: int, early_stop: bool, tail: str, measured: bool) -> None:
    """Check that the parts go together, and with what a run is asked for.

    Args:
        parts: The parts.
        group_size: Episodes of a group that train, at most.
        early_stop: Whether the rest of a group is cancelled once its selector has enough.
        tail: What becomes of the groups that end last.
        measured: Whether somebody measures the policy, for an advantage that needs it.

    Raises:
        ConfigurationError: They do not.
    """
    if early_stop and not isinstance(parts.selector, Settles):
        raise ConfigurationError(
            "early_stop needs a selector that can tell when a group has enough episodes; "
            f"{type(parts.selector).__name__} has no `settled`."
        )
    if group_size < (least := getattr(parts.advantage, "least", 1)):
        raise ConfigurationError(
            f"The advantage {type(parts.advantage).__name__} compares the episodes of a group and needs at least "
            f"{least}, not {group_size}.",
            option="group_size",
        )
    if not measured and (needs := getattr(parts.advantage, "needs", ())):
        raise ConfigurationError(
            f"The advantage {type(parts.advantage).__name__} needs {', '.join(sorted(needs))} of the policy, which "
            "this trainer does not measure."
        )
    known = sorted({component.name for component in parts.rewards})
    named = (name.removeprefix("turns/") for name in getattr(parts.advantage, "components", ()))
    if unknown := sorted(set(named) - set(known)):
        raise ConfigurationError(
            f"The advantage {type(parts.advantage).__name__} names {', '.join(unknown)}, and the components of the "
            f"reward are {', '.join(known)}: name those, or add {', '.join(unknown)} to reward.",
            option="advantage",
        )
    check_waits(parts.rollout, early_stop=early_stop, tail=tail)


def told_of(rollout: Rollout, groups: Sequence[Group]) -> list[tuple[int, Any]]:
    """What a rollout part has to tell every process of this one's groups, with their numbers."""
    if not isinstance(rollout, Learns):
        return []
    told = [(group.number, rollout.tell(group.episodes)) for group in groups]
    return [(number, said) for number, said in told if said is not None]


def heard_of(told: Iterable[Sequence[tuple[int, Any]]]) -> list[Any]:
    """What all processes told, in the order of the groups' numbers."""
    return [said for _, said in sorted(chain.from_iterable(told), key=lambda pair: pair[0])]
