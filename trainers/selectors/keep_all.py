"""``all``: trains on every episode of a group."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rstar2_env.core.episode import Episode, Group
from rstar2_env.core.options.declare import CheckedOptions

from .base import SELECTORS, all_equal, plain_reasons


@dataclass(frozen=True)
class KeepAll(CheckedOptions):
    """Keep the first available episodes of a group, at most ``group_size``, as plain GRPO does.

    Args:
        reject_equal: Whether to reject a group whose episodes are all equal in the property that ``equal`` names.
        equal: Compare episodes by ``"reward"``, or by ``"correct"``, as DAPO's dynamic sampling does
            (arXiv 2503.14476, section 3.2).
    """

    reject_equal: bool = False
    equal: Literal["reward", "correct"] = "reward"

    def __call__(self, group: Group, keep: int, rng: np.random.Generator) -> list[int]:
        """Return the positions of the chosen episodes; see ``Selector``."""
        usable = [position for position, episode in enumerate(group) if episode.available][:keep]
        return [] if self.reject_equal and self._same([group[position] for position in usable]) else usable

    def reasons(self, group: Group, keep: int, chosen: Sequence[int]) -> dict[int, str]:
        """Return the reason for each episode that was not chosen, by its position; see ``Reasons``.

        In a group that is kept, the reason is ``quota`` for available episodes after the first ``keep``.
        """
        reasons = plain_reasons(group, chosen, "quota")
        if self.equal == "correct":
            return {position: reason.replace("rejected", "equal") for position, reason in reasons.items()}
        return reasons

    def settled(self, group: Sequence[Episode | None], keep: int) -> bool:
        """Return whether the first ``keep`` available episodes have ended; later episodes would not be chosen.

        All episodes at earlier positions must have ended too, so stopping the others does not change the choice.
        """
        places = itertools.takewhile(lambda episode: episode is not None, group)
        return sum(episode is not None and episode.available for episode in places) >= keep

    def _same(self, usable: Sequence[Episode]) -> bool:
        if self.equal == "correct":
            return len({episode.correct for episode in usable}) <= 1
        return all_equal(usable)


SELECTORS.register("all", KeepAll)
