"""``minimum_group``: groups of which too few episodes count are rejected (minimum viable group, tinker-cookbook)."""

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
    """Reject groups of which too few episodes count, after failures of the infrastructure (tinker-cookbook).

    The variance of a group's baseline is that of a reward over n, so a group that lost most of its episodes teaches
    noise; one that lost a few is worth keeping. Choose it where sandboxes or servers fail now and then.

    Args:
        of: The selector of the groups that pass, as a recipe names it: ``roc``, ``(all:reject_equal=true)``.
        least: Smallest number of episodes that count.
    """

    least: int = option(2, least=1)

    word: ClassVar[str] = "few"

    def passes(self, counted: Sequence[Episode]) -> bool:
        """See ``GroupFilter``."""
        return len(counted) >= self.least

    def looks_at(self, counted: Sequence[Episode]) -> dict[str, float]:
        """See ``GroupFilter``."""
        return {"counted": float(len(counted)), "least": float(self.least)}


SELECTORS.register("minimum_group", MinimumGroup)
