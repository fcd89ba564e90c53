"""The protocol of advantage estimators, which convert the rewards of groups to advantages of episodes.

An estimator receives the selected episodes, by group, and ``ranks`` for statistics over the whole batch. Episodes that
ended as ``unavailable`` or ``cancelled`` are never included, so they do not affect any mean or deviation.

A class may have these attributes:

- ``least`` (default 1): the minimum number of episodes in a group. A smaller group is rejected before the estimator is
  called.
- ``needs`` (default none): the entries of ``Episode.measured`` that the estimator reads, named as in
  ``AdvantageNeed``. The trainer measures them for the selected episodes, in separate passes, before it calls the
  estimator.
- ``of_batch`` (default ``False``): whether the statistics cover the whole batch. If they do, ``groups`` also contains
  the groups that a selector rejected and that no other group replaced. The advantages of these groups are not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.declare import CheckedOptions
from rstar2_env.core.options.registry import Registry
from rstar2_env.core.options.user_code import Shape, is_called_with
from rstar2_env.core.row import FloatArray as FloatArray

from ..ranks import Ranks
from ..selectors.base import EQUAL

Advantages = list[list[float | FloatArray]]
"""For each group and episode, one number, or one number per token of ``completion_ids``."""

AdvantageNeed: TypeAlias = Literal["sum_squares", "answer"]
"""Measurements of the policy that an estimator may need, at the sampling temperature. ``sum_squares``: at each token of
``completion_ids``, the sum of the squared probabilities over the vocabulary (0 off the mask). ``answer``: before each
turn, the probability that the policy, after the estimator's text ``lead``, would continue with the problem's gold
answer; it is the geometric mean over the answer's tokens."""


class Measure(Protocol):
    """Function that computes the measurements that an estimator needs; each training backend implements it."""

    def __call__(self, part: Advantage, groups: Sequence[Sequence[Episode]]) -> None:
        """Store the measurements in ``Episode.measured``; every process must call it, even a process without groups.

        Args:
            part: The estimator; its attributes define the measurements.
            groups: The episodes of this process, by group.

        Raises:
            ConfigurationError: The measurement is not possible in this run.
        """
        ...


class Advantage(Protocol):
    """Converts the rewards of groups to advantages."""

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """Return the advantage of each episode of each group.

        Args:
            groups: The selected episodes of this process, by group. Other processes may have more, fewer or no groups.
            ranks: The processes, for sums over all of them. Every process calls the estimator and makes the same
                collective calls.
        """
        ...


class GroupAdvantage(CheckedOptions):
    """Base class of estimators that compute the advantages of a group from its episodes alone."""

    least: ClassVar[int] = 2

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """Return the advantage of each episode of each group; see ``Advantage``."""
        return [[own if np.ndim(own) else float(own) for own in self.estimate(group)] for group in groups]

    def estimate(self, group: Sequence[Episode]) -> Sequence[float | FloatArray] | FloatArray:
        """Return each episode's advantage in a group: one number, or one per token; subclasses override this method."""
        raise NotImplementedError


ADVANTAGES: Registry[Callable[..., Advantage]] = Registry(
    "advantage",
    "rstar2_env.trainers.advantages",
    "rstar2_env.advantages",
    shape=Shape(is_called_with(2), "a class whose objects are called with (groups, ranks), or a function of them"),
    listed_by="rstar2 list parts advantage",
)


def check_group_size(advantage: Advantage, size: int) -> None:
    """Check that groups are large enough for an advantage.

    Args:
        advantage: The estimator; its attribute ``least``, if present, is the smallest number of episodes in a group.
        size: Number of episodes of a group that are trained on.

    Raises:
        ConfigurationError: The groups are too small.
    """
    least = getattr(advantage, "least", 1)
    if size < least:
        raise ConfigurationError(
            f"The advantage {type(advantage).__name__} compares the episodes of a group and needs at "
            f"least {least} episodes per group; group_size is {size}. Set group_size={least} or more.",
            option="group_size",
        )


def measured(episode: Episode, need: AdvantageNeed) -> FloatArray:
    """Return the measurement ``need`` of an episode: one number per token (``sum_squares``) or per turn (``answer``).

    Raises:
        ConfigurationError: The measurement is missing.
    """
    if need not in episode.measured:
        raise ConfigurationError(
            f"The measurement {need!r} of an episode is missing. The trainer computes it only if the "
            f"class of the advantage lists it in the attribute `needs`: add {need!r} there."
        )
    return np.asarray(episode.measured[need], dtype=np.float64)


def rewards(group: Sequence[Episode]) -> FloatArray:
    """Return the rewards of a group, shape (episodes,)."""
    return np.array([episode.reward for episode in group], dtype=np.float64)


def centred(values: FloatArray) -> FloatArray:
    """Return the values minus their mean; exact zeros if the values are equal up to rounding.

    Args:
        values: Rewards, shape (episodes,).
    """
    if not len(values) or np.ptp(values) <= EQUAL * np.abs(values).max():
        return np.zeros_like(values)
    found: FloatArray = values - values.mean()
    return found


def without_rounding(differences: FloatArray, compared: FloatArray) -> FloatArray:
    """Return differences, with exact zeros for those that are 0 up to rounding.

    Args:
        differences: Results of subtractions, of any shape.
        compared: The numbers that were subtracted, of any shape; the rounding error is relative to the largest.
    """
    found: FloatArray = np.where(np.abs(differences) <= EQUAL * np.abs(compared).max(initial=0.0), 0.0, differences)
    return found


def deviation(values: FloatArray) -> float:
    """Return the standard deviation with n - 1 degrees of freedom; 0 for fewer than two values."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def moments(values: FloatArray, ranks: Ranks) -> tuple[float, float]:
    """Return the mean and the standard deviation (n - 1) of the values of all processes.

    Args:
        values: The values of this process, shape (n,).
        ranks: The processes.

    Returns:
        Mean and deviation; both are 0 if there are no values, and the deviation is 0 for one value.
    """
    total, count = ranks.sum(np.array([values.sum(), len(values)], dtype=np.float64))
    mean = float(total / max(count, 1.0))
    # A second pass over the values: the difference of two large sums would lose the small deviation between them.
    (squares,) = ranks.sum(np.array([np.square(values - mean).sum()], dtype=np.float64))
    return mean, math.sqrt(squares / (count - 1)) if count > 1 else 0.0


def sums_by_task(ranks: Ranks, values: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Return, for each task, the sum of its values over all processes; processes may have different tasks.

    Args:
        ranks: The processes.
        values: Pairs of a task and a value on this process.
    """
    totals: dict[str, float] = {}
    for own in ranks.gather(values):
        for task, value in own:
            totals[task] = totals.get(task, 0.0) + value
    return totals


def check_advantages(part: Advantage, groups: Sequence[Sequence[Episode]], values: Advantages) -> None:
    """Check the result of an estimator.

    Raises:
        ConfigurationError: The result is not one finite number per episode or per token.
    """
    name = type(part).__name__
    if [len(group) for group in values] != [len(group) for group in groups]:
        raise ConfigurationError(
            f"The advantage {name} must return one value for each episode. The groups have "
            f"{[len(g) for g in groups]} episodes, but it returned {[len(group) for group in values]} "
            "values."
        )
    for group, own in zip(groups, values, strict=True):
        for episode, value in zip(group, own, strict=True):
            if np.shape(value) not in ((), (len(episode.completion_ids),)) or not np.isfinite(value).all():
                raise ConfigurationError(
                    f"The advantage {name} must return one finite number for each episode, or one for "
                    f"each of the {len(episode.completion_ids)} tokens of the episode's completion; got "
                    f"{value!r}."
                )


def as_number(value: float | FloatArray, episode: Episode) -> float:
    """Return an advantage as one number; for an array, the mean absolute value over the policy's tokens."""
    if not isinstance(value, np.ndarray) or not value.ndim:
        return float(value)
    return float(np.abs(value)[np.asarray(episode.mask, dtype=bool)].mean())
