"""``GroupFilter``: base class of selectors that reject some groups and let another selector choose in all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rstar2_env.core.episode import Episode, Group

from .wrapped import WrappedSelector


@dataclass
class GroupFilter(WrappedSelector):
    """Rejects groups that do not pass a test; in groups that pass, a wrapped selector chooses the episodes.

    Args:
        of: The wrapped selector, written as in a recipe: ``roc``, ``(all:reject_equal=true)``, ``./mine.py:Mine``.
    """

    word: ClassVar[str] = "rejected"
    """Reason recorded for the episodes of a rejected group."""

    def passes(self, counted: Sequence[Episode]) -> bool:
        """Return whether a group passes, given its available episodes; subclasses override this method."""
        raise NotImplementedError

    def looks_at(self, counted: Sequence[Episode]) -> Mapping[str, float]:
        """Return the numbers by which the filter decides, and their bounds, by name; subclasses override this."""
        return {}

    def __call__(self, group: Group, keep: int, rng: np.random.Generator) -> list[int]:
        """Return the positions of the chosen episodes; see ``Selector``."""
        return self._inner(group, keep, rng) if self._lets(group) else []

    def reasons(self, group: Group, keep: int, chosen: Sequence[int]) -> Mapping[int, str]:
        """Return the reason for each episode that was not chosen, by its position; see ``Reasons``."""
        if not self._lets(group):
            return {at: self.word if episode.available else episode.end for at, episode in enumerate(group)}
        return super().reasons(group, keep, chosen)

    def weighed(self, group: Group, keep: int) -> dict[int, dict[str, float]]:
        """Return, by position, the numbers that the filter compared and, if the group passes, the wrapped selector's.

        See ``Weighs``.
        """
        counted = [episode for episode in group if episode.available]
        inner = super().weighed(group, keep) if self.passes(counted) else {}
        own = self.looks_at(counted)
        return {at: {**inner.get(at, {}), **own} for at, episode in enumerate(group) if episode.available}

    def _lets(self, group: Group) -> bool:
        return self.passes([episode for episode in group if episode.available])
