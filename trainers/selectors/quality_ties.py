"""``quality_ties``: Resample-on-Correct that also keeps all-correct groups if their calls differ in quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rstar2_env.core.episode import Episode, Group
from rstar2_env.rewards.roc_penalty import penalties, penalty

from .base import SELECTORS, all_equal, plain_reasons
from .wrapped import WrappedSelector


def tied(group: Sequence[Episode]) -> bool:
    """Return whether all answers are correct with equal rewards, but their Resample-on-Correct penalties differ."""
    right = all(episode.correct for episode in group) and all_equal(group)
    return right and len({penalty(episode) for episode in group}) > 1


@dataclass
class QualityTieSelector(WrappedSelector):
    """In an all-correct group, keeps the episodes with the lowest and the highest penalties for tool calls.

    In all other groups, a wrapped selector chooses. GRPO-RoC (arXiv 2508.20722) rejects all-correct groups, since equal
    rewards give advantages of zero, so a solved problem teaches the policy nothing about calls. Use this selector with
    the advantage of the same name, which compares the penalties (failed calls, answer tags) if the rewards are equal.
    The reward does not change, and calls never count more than answers: the wrapped selector chooses if an answer is
    wrong. Half of the kept episodes have the lowest penalties, and half the highest. This part is our own.

    Args:
        of: The selector that chooses within all other groups, written as in a recipe: ``roc``, ``(roc:mode=rank)``.
    """

    of: Any = "roc"
    ties: ClassVar[bool] = True
    """Declares that all-correct groups are kept, for an advantage that distinguishes their episodes."""

    def __call__(self, group: Group, keep: int, rng: np.random.Generator) -> list[int]:
        """Return the positions of the chosen episodes; see ``Selector``."""
        usable = [position for position, episode in enumerate(group) if episode.available]
        if not tied([group[position] for position in usable]):
            return self._inner(group, keep, rng)
        order = sorted(usable, key=lambda position: penalty(group[position]))
        count = min(keep, len(order))
        worst = count // 2
        return sorted(order[: count - worst] + order[len(order) - worst :])

    def reasons(self, group: Group, keep: int, chosen: Sequence[int]) -> Mapping[int, str]:
        """Return the reason for each episode that was not chosen, by its position; see ``Reasons``.

        In a group with correct answers only but different penalties (``tied``), the reason is ``penalty``, or ``order``
        if a kept episode has the same penalty. In other groups, the reasons are those of the wrapped selector.
        """
        if tied([episode for episode in group if episode.available]):
            kept = {penalty(group[position]) for position in chosen}
            plain = plain_reasons(group, chosen, "penalty")
            return {
                at: "order" if word == "penalty" and penalty(group[at]) in kept else word for at, word in plain.items()
            }
        return super().reasons(group, keep, chosen)

    def weights(self, group: Group, keep: int, chosen: Sequence[int]) -> Sequence[float] | None:
        """Return the wrapped selector's weights; ``None`` if the group is ``tied``. See ``ImportanceWeights``."""
        if tied([episode for episode in group if episode.available]):
            return None
        return super().weights(group, keep, chosen)

    def weighed(self, group: Group, keep: int) -> Mapping[int, Mapping[str, float]]:
        """Return the penalties if the group is ``tied``, else the wrapped selector's numbers; see ``Weighs``."""
        usable = {at: episode for at, episode in enumerate(group) if episode.available}
        if not tied(list(usable.values())):
            return super().weighed(group, keep)
        return {at: penalties(one) for at, one in usable.items()}


SELECTORS.register("quality_ties", QualityTieSelector)
