"""What an advantage estimator is: it turns the rewards of a batch's groups into the advantages of their episodes.

An estimator is given the episodes that train, group by group, and ``ranks`` for what it computes over the whole batch.
Episodes that ended as ``unavailable`` or ``cancelled`` are never among them, so they affect no mean and no deviation.

A class may say two things about itself:

- ``least`` (1 if it says nothing): how many episodes a group needs for its advantages to mean something. A smaller
  group is rejected before the estimator sees it.
- ``needs`` (nothing): what it reads of ``Episode.measured``, as ``AdvantageNeed`` names it. The trainer measures it in
  passes of its own, before the estimator is called, of the episodes that train.
- ``of_batch`` (``False``): its statistics are those of the whole batch, so the groups that a selector rejected, and
  that no refill replaced, are among ``groups`` too. Nothing trains on what it returns for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rstar2_env.core.episode import Episode
from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.options.own_code import Shape, is_called_with
from rstar2_env.core.options.registry import Registry

from ..ranks import Ranks
from ..selectors.base import EQUAL

FloatArray = NDArray[np.float64]
Advantages = list[list[float | FloatArray]]
"""Of each group and episode one number, or one for each token of ``completion_ids``."""

AdvantageNeed: TypeAlias = Literal["sum_squares", "answer"]
"""What an estimator may need of the policy, at the temperature of the sampling: ``sum_squares``, at each token of
``completion_ids`` the sum of the squared probabilities of the whole vocabulary (0 off the mask); ``answer``, before
each turn the probability of the problem's gold answer after the estimator's text ``lead``, as the geometric mean over
the answer's tokens."""


class Measure(Protocol):
    """What a backend offers a collector: it measures the policy."""

    def __call__(self, part: Advantage, groups: Sequence[Sequence[Episode]]) -> None:
        """Set ``measured`` of every episode, as the estimator needs it; every process calls, with groups or without.

        Raises:
            ConfigurationError: It cannot be measured here.
        """
        ...


class Advantage(Protocol):
    """Turns the rewards of the groups into advantages."""

    def __call__(self, groups: Sequence[Sequence[Episode]], ranks: Ranks) -> Advantages:
        """Return the advantage of each episode of each group.

        Args:
            groups: The episodes of this process that train, group by group. Another process may have more groups or
                fewer, or none.
            ranks: Reduces over all processes; each calls the estimator, and all make the same collective calls.
        """
        ...


ADVANTAGES: Registry[Callable[..., Advantage]] = Registry(
    "advantage",
    "rstar2_env.trainers.advantages",
    "rstar2_env.advantages",
    shape=Shape(is_called_with(2), "a class whose objects are called with (groups, ranks), or a function of them"),
)


def measured(episode: Episode, need: AdvantageNeed) -> FloatArray:
    """What was measured of an episode, one number a token or a turn.

    Raises:
        ConfigurationError: Nothing was.
    """
    if need not in episode.measured:
        raise ConfigurationError(
            f"This advantage needs {need!r} of each episode, which the trainer measures when the class says so in its "
            "`needs`; there is none."
        )
    return np.asarray(episode.measured[need], dtype=np.float64)


def rewards(group: Sequence[Episode]) -> FloatArray:
    """The rewards of a group, shape (episodes,)."""
    return np.array([episode.reward for episode in group], dtype=np.float64)


def centred(values: FloatArray) -> FloatArray:
    """The values less their mean; exact zeros where they are equal but for rounding.

    Args:
        values: Rewards, shape (episodes,).
    """
    if not len(values) or np.ptp(values) <= EQUAL * np.abs(values).max():
        return np.zeros_like(values)
    found: FloatArray = values - values.mean()
    return found


def deviation(values: FloatArray) -> float:
    """The standard deviation over n - 1; 0 for fewer than two values."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def moments(values: FloatArray, ranks: Ranks) -> tuple[float, float]:
    """The mean and the standard deviation over n - 1 of the values of all processes.

    Args:
        values: Those of this process, shape (n,).
        ranks: The processes.

    Returns:
        Mean and deviation; both 0 without a value, the deviation 0 with one.
    """
    total, count = ranks.sum(np.array([values.sum(), len(values)], dtype=np.float64))
    mean = float(total / max(count, 1.0))
    # A second pass over the values: the difference of two large sums would lose the small deviation between them.
    (squares,) = ranks.sum(np.array([np.square(values - mean).sum()], dtype=np.float64))
    return mean, math.sqrt(squares / (count - 1)) if count > 1 else 0.0


def check_advantages(part: Advantage, groups: Sequence[Sequence[Episode]], values: Advantages) -> None:
    """Check what an estimator returned.

    Raises:
        ConfigurationError: It is not one finite number for each episode, or one for each of its tokens.
    """
    name = type(part).__name__
    if [len(group) for group in values] != [len(group) for group in groups]:
        raise ConfigurationError(
            f"The advantage {name} must return a value for each episode of groups of {[len(g) for g in groups]}, not "
            f"groups of {[len(group) for group in values]}."
        )
    for group, own in zip(groups, values, strict=True):
        for episode, value in zip(group, own, strict=True):
            if np.shape(value) not in ((), (len(episode.completion_ids),)) or not np.isfinite(value).all():
                raise ConfigurationError(
                    f"The advantage {name} must return a finite number for each episode, or one for each of its "
                    f"{len(episode.completion_ids)} tokens, not {value!r}."
                )


def as_number(value: float | FloatArray, episode: Episode) -> float:
    """An advantage as one number: of one for each token, the mean of the absolute ones of the policy's tokens."""
    if not isinstance(value, np.ndarray) or not value.ndim:
        return float(value)
    return float(np.abs(value)[np.asarray(episode.mask, dtype=bool)].mean())
