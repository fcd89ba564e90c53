"""``minimum_group``: rejects groups with too few available episodes (minimum viable group, tinker-cookbook)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rstar2_env.core.episode import Episode
from rstar2_env.core.options.declare import option

from .base import SELECTORS
from .group_filter import GroupFilter


@dataclass
class MinimumGroup(GroupFilter):
    """Reject groups that lost too many episodes to infrastructure failures (tinker-cookbook).

    A group's baseline is the mean reward of its $n$ episodes; the variance of this mean is the variance of one reward
    divided by $n$. A group that lost most of its episodes therefore adds mostly noise, whereas a group that lost a few
    episodes is worth keeping. Use this selector if sandboxes or servers fail occasionally.

    Args:
        of: The selector that chooses within the groups that pass, written as in a recipe: ``roc``,
            ``(all:reject_equal=true)``.
        least: Minimum number of available episodes.
    """

    least: int = option(2, least=1)

    word: ClassVar[str] = "few"

    def passes(self, counted: Sequence[Episode]) -> bool:
        """Return whether a group passes, given its available episodes; see ``GroupFilter``."""
        return len(counted) >= self.least

    def looks_at(self, counted: Sequence[Episode]) -> dict[str, float]:
        """Return the numbers by which the filter decides, and their bounds; see ``GroupFilter``."""
        return {"counted": float(len(counted)), "least": float(self.least)}


SELECTORS.register("minimum_group", MinimumGroup)
