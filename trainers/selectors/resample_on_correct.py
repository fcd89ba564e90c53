"""Selectors: which episodes of a group train, once their rewards are known.

Covered: Resample-on-Correct (rStar2-Agent, arXiv 2508.20722, section 2.2) in the paper's way and in the released code's
way, and keeping all. A selector is a pure function of the group and a random generator; it never looks at text. It may
also say when a group that still plays needs no more. Not covered: playing more episodes until a group is worth keeping.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from rstar2_env.core.episode import Episode, Group
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options import CheckedOptions, option
from rstar2_env.core.own_code import Shape, is_class_with
from rstar2_env.core.registry import Registry

DELTA = 0.01
"""Added to a penalty before it is inverted, so that a flawless episode has a finite weight. The paper states none."""


class Selector(Protocol):
    """Chooses which episodes of one group train."""

    def __call__(self, group: Group, keep: int, rng: np.random.Generator) -> list[int]:
        """Return the positions of at most ``keep`` episodes, ascending; none when the group is rejected.

        Episodes that are not ``available`` must never be chosen.
        """
        ...


@runtime_checkable
class Settles(Protocol):
    """What a selector offers besides when it can say that a group needs no more episodes."""

    def settled(self, group: Sequence[Episode | None], keep: int) -> bool:
        """Whether the rest of the group may be cancelled; ``None`` stands for an episode that still plays."""
        ...


SELECTORS: Registry[type[Selector]] = Registry(
    "selector",
    "rstar2_env.trainers.selectors",
    "rstar2_env.selectors",
    shape=Shape(is_class_with("__call__"), "a class whose objects are called with (group, keep, rng)"),
)


def tool_error_penalty(episode: Episode) -> float:
    """``p_err`` (Eq. 4): the share of erroneous calls, 0.5 without a call; from statuses, in [0, 1]."""
    share = episode.error_share
    return 0.5 if share is None else share


def format_penalty(episode: Episode) -> float:
    """``p_format`` (Eq. 5): 1 without an answer tag, else min(1, (tags - 1) / turns), turns counted by the loop."""
    if episode.answer_tags == 0:
        return 1.0
    return min(1.0, (episode.answer_tags - 1) / max(episode.turns, 1))


def penalty(episode: Episode) -> float:
    """``p_total = p_err + p_format``, in [0, 2]."""
    return tool_error_penalty(episode) + format_penalty(episode)


def quotas(positives: int, negatives: int, keep: int, *, minimum: int = 2) -> tuple[int, int]:
    """How many of each side to keep: half each when ``keep`` is half the group, never fewer than ``minimum``.

    Both sides are scaled by ``keep / n`` and rounded half to even; then each is raised to ``minimum`` as far as it has
    members; then the larger gives up what is too many, or whichever has members left takes what is missing.

    Args:
        positives: Episodes with a right answer.
        negatives: The others.
        keep: Episodes to keep.
        minimum: Fewest of each side, where there are as many.

    Returns:
        The quota of either side; their sum is ``min(keep, positives + negatives)``.

    Raises:
        ConfigurationError: ``keep`` is not positive, or ``minimum`` is negative.
    """
    if keep < 1 or minimum < 0:
        raise ConfigurationError(f"quotas needs keep >= 1 and minimum >= 0, not {keep} and {minimum}.")
    total = positives + negatives
    if total <= keep:
        return positives, negatives
    # A minimum that both sides cannot have together is lowered to what they can.
    minimum = min(minimum, keep // 2)
    pos = max(round(positives * keep / total), min(minimum, positives))
    neg = max(round(negatives * keep / total), min(minimum, negatives))
    while pos + neg > keep:
        if pos >= neg:
            pos -= 1
        else:
            neg -= 1
    while pos + neg < keep:
        if pos < positives and (pos <= neg or neg == negatives):
            pos += 1
        else:
            neg += 1
    return pos, neg


def all_equal(group: Sequence[Episode]) -> bool:
    """Whether every reward is the same: such a group has no advantage to learn from."""
    return len({episode.reward for episode in group}) <= 1


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
        """Whether the first ``keep`` are there: what comes after them changes nothing.

        An episode that still plays at an earlier place is waited for, so the choice is the same as without stopping.
        """
        places = itertools.takewhile(lambda episode: episode is not None, group)
        return sum(episode is not None and episode.available for episode in places) >= keep


@dataclass(frozen=True)
class ResampleOnCorrect(CheckedOptions):
    """GRPO-RoC's selector: failures uniformly, successes by how cleanly they were reached.

    A group whose rewards are all equal is rejected; so is, in effect, one with no available episode.

    Args:
        mode: ``"sample"`` draws successes without replacement with weights 1 / (penalty + delta), as the paper says;
            ``"rank"`` takes those of the lowest penalty, earliest first, as the released code does.
        minimum: Fewest of each side, where there are as many.
        delta: See ``DELTA``.
        spare: When a group may stop early: successes that must have ended for each one that is kept of a balanced
            group, at least 1. With 1 nothing is left to choose from; where ``keep`` is half the group, 2 is what a
            balanced group has in the end.
    """

    mode: Literal["sample", "rank"] = "sample"
    minimum: int = option(2, least=0)
    delta: float = option(DELTA, above=0)
    spare: float = option(2.0, least=1)

    def __call__(self, group: Group, keep: int, rng: np.random.Generator) -> list[int]:
        """See ``Selector``."""
        usable = [position for position, episode in enumerate(group) if episode.available]
        if all_equal([group[position] for position in usable]):
            return []
        positives = [position for position in usable if group[position].correct]
        negatives = [position for position in usable if not group[position].correct]
        n_positives, n_negatives = quotas(len(positives), len(negatives), keep, minimum=self.minimum)
        kept = self._successes(group, positives, n_positives, rng)
        kept += [int(i) for i in rng.choice(negatives, size=n_negatives, replace=False)] if n_negatives else []
        return sorted(kept)

    def settled(self, group: Sequence[Episode | None], keep: int) -> bool:
        """Whether enough of both kinds have ended: failures to fill half of ``keep``, and successes to choose from.

        Unlike without stopping, those that end first are then all there is to choose from.
        """
        ended = [episode for episode in group if episode is not None and episode.available]
        positives = sum(episode.correct for episode in ended)
        return positives >= math.ceil(self.spare * (keep / 2)) and len(ended) - positives >= keep / 2

    def _successes(self, group: Group, positives: list[int], count: int, rng: np.random.Generator) -> list[int]:
        if count == 0:
            return []
        penalties = np.array([penalty(group[position]) for position in positives])
        if self.mode == "rank":
            return [positives[i] for i in np.argsort(penalties, kind="stable")[:count]]
        weights = 1.0 / (penalties + self.delta)
        return [int(i) for i in rng.choice(positives, size=count, replace=False, p=weights / weights.sum())]


SELECTORS.register("all", KeepAll)
SELECTORS.register("roc", ResampleOnCorrect)
