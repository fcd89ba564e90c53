"""``quality_ties``: Resample-on-Correct that also keeps groups that are all right, if their calls differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rstar2_env.core.episode import Episode, Group
from rstar2_env.core.options.declare import CheckedOptions
from rstar2_env.core.options.parts import make_inner

from .base import SELECTORS, Reasons, Selector, Weighs, all_equal, plain_reasons
from .resample_on_correct import penalties, penalty


def tied(group: Sequence[Episode]) -> bool:
    """Whether all answers are right and earn the same, and the penalties of Resample-on-Correct tell them apart."""
    right = len(group) > 1 and all(episode.correct for episode in group) and all_equal(group)
    return right and len({penalty(episode) for episode in group}) > 1


@dataclass
class QualityTies(CheckedOptions):
    """Keeps the cleanest and the least clean episodes of a group that is all right; else, what another selector keeps.

    GRPO-RoC (arXiv 2508.20722) rejects such a group, since equal rewards have only advantages of zero: once a problem
    is solved, it teaches nothing of its calls any more. A selector alone cannot change that, whatever it keeps, so this
    one goes with the advantage of the same name, which compares the penalties (failed calls, answer tags) where the
    rewards are equal. The reward is as it was, and an answer is never weighed against a call: as soon as one of the
    group is wrong, the other selector chooses. Half of ``keep`` are those with the lowest penalties, the rest those
    with the highest, where the difference is largest. This part is our own.

    Args:
        of: The selector of all other groups, as a recipe names it: ``roc``, ``(roc:mode=rank)``.
    """

    of: Any = "roc"
    ties: ClassVar[bool] = True
    """Says that groups of right answers are kept for an advantage that tells them apart."""
    _inner: Selector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Make the other selector.

        Raises:
            ConfigurationError: It does not take its options.
            UnknownNameError: There is none of that name.
        """
        super().__post_init__()
        self._inner = make_inner(SELECTORS, self.of)

    def __call__(self, group: Group, keep: int, rng: np.random.Generator) -> list[int]:
        """See ``Selector``."""
        usable = [position for position, episode in enumerate(group) if episode.available]
        if not tied([group[position] for position in usable]):
            return self._inner(group, keep, rng)
        order = sorted(usable, key=lambda position: penalty(group[position]))
        worst = min(keep, len(order)) // 2
        return sorted(order[: min(keep, len(order)) - worst] + order[len(order) - worst :])

    def reasons(self, group: Group, keep: int, chosen: Sequence[int]) -> Mapping[int, str]:
        """See ``Reasons``: of a group that is all right, those of middling ``penalty`` are left out."""
        if tied([episode for episode in group if episode.available]):
            return plain_reasons(group, chosen, "penalty")
        if isinstance(self._inner, Reasons):
            return self._inner.reasons(group, keep, chosen)
        return plain_reasons(group, chosen, "unselected")

    def weighed(self, group: Group, keep: int) -> Mapping[int, Mapping[str, float]]:
        """See ``Weighs``: of a group that is all right, the penalty with its parts."""
        usable = {at: episode for at, episode in enumerate(group) if episode.available}
        if not tied(list(usable.values())):
            return self._inner.weighed(group, keep) if isinstance(self._inner, Weighs) else {}
        return {at: penalties(one) for at, one in usable.items()}


SELECTORS.register("quality_ties", QualityTies)
