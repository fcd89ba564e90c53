"""``roc``: Resample-on-Correct (rStar2-Agent, arXiv 2508.20722, section 2.2), as in the paper or the released code.

``mode=weighted`` is our own: it has the same preference, but its importance weights remove the bias of the selection
(the estimator of Horvitz and Thompson). Not covered: the penalty (``rstar2_env/rewards/roc_penalty.py``).
"""

# This module is longer than most parts because it contains the quotas and all ways to choose, each testable.

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rstar2_env.core.episode import Episode, Group
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions, option
from rstar2_env.rewards.roc_penalty import penalties, penalty

from .base import SELECTORS, all_equal, plain_reasons

DELTA = 0.01
"""Added to a penalty before inverting it, so that an episode without penalty has a finite weight; not in the paper."""


def quotas(positives: int, negatives: int, keep: int, *, minimum: int = 2) -> tuple[int, int]:
    """Return the numbers of successes and failures to keep, in proportion to their shares of the group.

    The number of successes and the number of failures are multiplied by ``keep / (positives + negatives)`` and rounded
    (half to even). Each quota is then raised to ``minimum``, or to the number of such episodes if there are fewer. If
    the sum exceeds ``keep``, the larger quota is reduced; if the sum is less than ``keep``, the smaller quota is
    increased.

    Args:
        positives: Number of episodes with a right answer (successes).
        negatives: Number of the other episodes (failures).
        keep: Number of episodes to keep.
        minimum: Minimum quota of successes and of failures, at most ``keep // 2``, if the group has that many.

    Returns:
        The quotas of positives and negatives; their sum is ``min(keep, positives + negatives)``.

    Raises:
        ConfigurationError: ``keep`` is not positive, or ``minimum`` is negative.
    """
    if keep < 1 or minimum < 0:
        raise ConfigurationError(
            "A group must keep at least 1 episode, and the option `minimum` must be at least 0; got "
            f"keep={keep} and minimum={minimum}."
        )
    total = positives + negatives
    if total <= keep:
        return positives, negatives
    # A minimum that does not fit into keep for both sides is lowered to half of keep.
    minimum = min(minimum, keep // 2)
    pos = max(round(positives * keep / total), min(minimum, positives))
    neg = max(round(negatives * keep / total), min(minimum, negatives))
    while pos + neg > keep:
        if pos >= neg:
            pos -= 1
        else:
            neg -= 1
    if pos + neg < keep:  # both quotas ended in one half and were rounded down, so both sides have an episode left
        return (pos + 1, neg) if pos <= neg else (pos, neg + 1)
    return pos, neg


def inclusions(chances: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return each element's probability of being among ``count`` drawn elements, in proportion to ``chances``.

    Probabilities above 1 are lowered to 1, and the others are raised so that the sum is ``count`` (sampling with
    probabilities in proportion to size; Tillé, Sampling Algorithms, 2006, section 2.10).

    Args:
        chances: Positive numbers, (elements,).
        count: Number of drawn elements, at most the number of elements.

    Returns:
        Probabilities in (0, 1], (elements,).
    """
    if not len(chances):
        return chances
    sure = np.zeros(len(chances), dtype=bool)
    found: NDArray[np.float64] = chances * (count / chances.sum())
    while (above := ~sure & (found > 1)).any():
        sure |= above
        rest = chances[~sure].sum()
        found = np.where(sure, 1.0, chances * ((count - sure.sum()) / rest if rest > 0 else 0.0))
    return found


def systematic(inclusion: NDArray[np.float64], rng: np.random.Generator) -> list[int]:
    """Draw elements, each with its given probability; the number of drawn elements is the sum of the probabilities.

    The elements are placed on a line in random order, each as an interval as long as its probability. For a random u in
    [0, 1), the elements at the points u, u + 1, u + 2, ... are drawn (systematic sampling).

    Args:
        inclusion: Probabilities in (0, 1], (elements,); their sum is an integer.
        rng: Draws the order and u.
    """
    sure = [int(at) for at in np.flatnonzero(inclusion >= 1)]
    rest = rng.permutation(np.flatnonzero(inclusion < 1))
    count = round(float(inclusion.sum())) - len(sure)
    if count == 0:
        return sure
    ends = np.cumsum(inclusion[rest])
    points = (np.arange(count) + rng.random()) * (ends[-1] / count)
    return sure + [int(rest[at]) for at in np.searchsorted(ends, points, side="right").clip(max=len(rest) - 1)]


@dataclass(frozen=True)
class ResampleOnCorrect(CheckedOptions):
    r"""GRPO-RoC's selector: draws failures uniformly, and prefers successes with low penalties.

    The penalty of an episode is $p_\text{err} + p_\text{format}$. $p_\text{err}$ is the share of its calls that failed,
    or 0.5 if it has none. $p_\text{format}$ is 1 without an answer tag, else
    $\min(1, \frac{\text{tags} - 1}{\text{turns}})$. Successes and failures are kept in proportion to their shares of
    the group, but at least ``minimum`` of each. The reward does not change; a correct answer with failing calls is only
    selected less often. Use this selector if the policy calls tools, since a reward for correct answers alone also
    reinforces failing calls. Groups with equal rewards or without an available episode are rejected.

    Args:
        mode: ``"sample"`` draws successes without replacement with weights $\frac{1}{\text{penalty} + \text{delta}}$,
            as in rStar2-Agent's paper; ``"rank"`` takes the successes with the lowest penalties, the earlier ones if
            penalties are equal, as in the released code; ``"weighted"`` draws like ``"sample"``, but compares each
            episode with all available episodes of its group, and divides the episode's advantage by its probability of
            being kept. The expected update then equals the expected update of training on all episodes: the preference
            for low penalties decides what is trained on, but not what is learned.
        minimum: Minimum number of successes and of failures to keep, if the group has that many.
        delta: Added to a penalty before it is inverted, so that an episode without penalty has a finite weight; not in
            the paper.
        spare: With ``early_stop``: a group stops when $\frac{\text{keep}}{2}$ failures and
            $\text{spare} \frac{\text{keep}}{2}$ successes have ended. With 1, the successes that end first are all
            kept. With 2, if ``keep`` is half of the group, the group stops early only when half of its episodes have
            succeeded.
        uniform: With ``"weighted"``, weight of a uniform draw in the probabilities of successes; the rest is the
            weight of the draw by penalties. A lower value makes larger importance weights, and so a noisier update.
    """

    mode: Literal["sample", "rank", "weighted"] = "sample"
    minimum: int = option(2, least=0)
    delta: float = option(DELTA, above=0)
    spare: float = option(2.0, least=1)
    uniform: float = option(0.5, above=0, most=1)

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            ConfigurationError: An option is not valid, or ``minimum`` is 0 with ``"weighted"``.
        """
        super().__post_init__()
        if self.mode == "weighted" and self.minimum == 0:
            raise ConfigurationError(
                "With mode=weighted, the weights correct for dropped episodes, but minimum=0 may drop "
                "all correct or all wrong episodes, which no weight can correct: set minimum to 1 or "
                "more.",
                option="minimum",
            )

    def __call__(self, group: Group, keep: int, rng: np.random.Generator) -> list[int]:
        """Return the positions of the chosen episodes; see ``Selector``.

        Raises:
            ConfigurationError: ``keep`` is 1 with ``mode="weighted"``.
        """
        if self.mode == "weighted" and keep < 2:
            raise ConfigurationError(
                "mode=weighted must keep at least one correct and one wrong episode of each group: set "
                "group_size to 2 or more."
            )
        usable = [position for position, episode in enumerate(group) if episode.available]
        if all_equal([group[position] for position in usable]):
            return []
        positives = [position for position in usable if group[position].correct]
        negatives = [position for position in usable if not group[position].correct]
        n_positives, n_negatives = quotas(len(positives), len(negatives), keep, minimum=self.minimum)
        kept = self._successes(group, positives, n_positives, rng)
        kept += [int(i) for i in rng.choice(negatives, size=n_negatives, replace=False)]
        return sorted(kept)

    def reasons(self, group: Group, keep: int, chosen: Sequence[int]) -> dict[int, str]:
        """Return the reason for each episode that was not chosen, by its position; see ``Reasons``.

        The reasons are:

        - ``quota``: no episode of the same kind (success or failure) was kept;
        - ``penalty``: a success whose penalty made it less likely to be drawn than in a uniform draw or, with ``rank``,
          a success with a higher penalty than every kept success;
        - ``order``: with ``rank``, a success that comes after a kept success with the same penalty;
        - ``draw``: any other episode, which was not drawn.
        """
        sides = {group[position].correct for position in chosen}
        plain = plain_reasons(group, chosen, "unselected")
        left_out = [position for position, word in plain.items() if word == "unselected"]
        positives = [position for position in (*chosen, *left_out) if group[position].correct]
        if self.mode != "rank":
            chances = dict(zip(positives, self._chances(group, positives), strict=True))
            passed = {at for at, chance in chances.items() if chance < (1 - 1e-9) / len(positives)}
        else:
            worst = max((penalty(group[at]) for at in chosen if group[at].correct), default=0.0)
            passed = {at for at in positives if penalty(group[at]) > worst}
        by_chance = "order" if self.mode == "rank" else "draw"

        def of(position: int) -> str:
            correct = group[position].correct
            if correct not in sides:
                return "quota"
            return "draw" if not correct else "penalty" if position in passed else by_chance

        return {at: of(at) if word == "unselected" else word for at, word in plain.items()}

    def weighed(self, group: Group, keep: int) -> dict[int, dict[str, float]]:
        """Return, for each available episode, ``penalty`` with its parts, ``quota`` and ``chance``; see ``Weighs``."""
        usable = [position for position, episode in enumerate(group) if episode.available]
        told = {position: penalties(group[position]) for position in usable}
        if all_equal([group[position] for position in usable]):
            return told
        positives = [position for position in usable if group[position].correct]
        negatives = len(usable) - len(positives)
        sides = quotas(len(positives), negatives, keep, minimum=self.minimum)
        weighted = self.mode == "weighted"
        found = self._chances(group, positives)
        chances = dict(zip(positives, inclusions(found, sides[0]) if weighted else found, strict=True))
        for position, numbers in told.items():
            correct = group[position].correct
            numbers["quota"] = float(sides[0 if correct else 1])
            if not correct:
                numbers["chance"] = (sides[1] if weighted else 1) / negatives
            elif self.mode != "rank":
                numbers["chance"] = float(chances[position])
        return told

    def weights(self, group: Group, keep: int, chosen: Sequence[int]) -> list[float] | None:
        """Return the importance weights of the chosen episodes with ``mode="weighted"``; see ``ImportanceWeights``.

        A weight is the share of the available episodes that is kept, divided by the probability to be kept. The mean of
        the weighted updates of the kept episodes then equals, in expectation, the mean over all available episodes.
        """
        if self.mode != "weighted" or not chosen:
            return None
        usable = [position for position, episode in enumerate(group) if episode.available]
        positives = [position for position in usable if group[position].correct]
        negatives = len(usable) - len(positives)
        n_positives, n_negatives = quotas(len(positives), negatives, keep, minimum=self.minimum)
        kept = dict(zip(positives, inclusions(self._chances(group, positives), n_positives), strict=True))
        share = len(chosen) / len(usable)
        return [share / kept[at] if at in kept else share * negatives / n_negatives for at in chosen]

    def settled(self, group: Sequence[Episode | None], keep: int) -> bool:
        """Return whether enough episodes have ended: keep / 2 failures and spare * keep / 2 successes.

        With early stop the choice changes: only the episodes that end first can be selected.
        """
        ended = [episode for episode in group if episode is not None and episode.available]
        positives = sum(episode.correct for episode in ended)
        return positives >= math.ceil(self.spare * (keep / 2)) and len(ended) - positives >= keep / 2

    def _successes(self, group: Group, positives: list[int], count: int, rng: np.random.Generator) -> list[int]:
        if count == 0:
            return []
        if self.mode == "rank":
            penalties = np.array([penalty(group[position]) for position in positives])
            return [positives[i] for i in np.argsort(penalties, kind="stable")[:count]]
        chances = self._chances(group, positives)
        if self.mode == "weighted":
            return [positives[i] for i in systematic(inclusions(chances, count), rng)]
        return [int(i) for i in rng.choice(positives, size=count, replace=False, p=chances)]

    def _chances(self, group: Group, positives: list[int]) -> NDArray[np.float64]:
        weights = 1.0 / (np.array([penalty(group[position]) for position in positives]) + self.delta)
        chances: NDArray[np.float64] = weights / weights.sum()
        if self.mode == "weighted" and positives:
            return (1 - self.uniform) * chances + self.uniform / len(positives)
        return chances


SELECTORS.register("roc", ResampleOnCorrect)
