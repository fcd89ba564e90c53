"""``all``: every episode of a group is trained on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rstar2_env.core.episode import Episode, Group

from .base import SELECTORS, all_equal


@dataclass(frozen=True)
class KeepAll:
    """Keep the first ``keep`` available episodes of a group, as plain GRPO does.

    Args:
        reject_equal: Reject a group whose rewards are all equal, instead of training on advantages of zero.
    """

    reject_equal: bool = False

    def __call__(self, group: Group, keep: int, rng: np.random.Generator) -> list[int]:
        """See ``Selector``."""
        usable = [position for position, episode in enumerate(group) if episode.available][:keep]
        if self.reject_equal and all_equal([group[position] for position in usable]):
            return []
        return usable

    def settled(self, group: Sequence[Episode | None], keep: int) -> bool:
        """Whether the first ``keep`` available episodes have ended; later ones would not be chosen.

        Unfinished episodes at earlier positions are waited for, so the choice is the same as without early stop.
        """
        places = itertools.takewhile(lambda episode: episode is not None, group)
        return sum(episode is not None and episode.available for episode in places) >= keep


SELECTORS.register("all", KeepAll)
