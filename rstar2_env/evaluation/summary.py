"""Summary of many episodes: pass rate, tool errors, turns, broken formats, each with its standard error.

Covered: means and shares over episodes, with errors that take into account that episodes of one problem, or calls of
one episode, belong together. Not covered: how the episodes were played (``rstar2_env.evaluation.run``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rstar2_env.core.episode import Episode


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean or a share, and how far it is from what infinitely many such problems would give.

    Attributes:
        value: The estimate; ``None`` when nothing counts.
        error: Its standard error; ``None`` with fewer than two independent observations.
        count: What it was taken over: episodes, or calls.
    """

    value: float | None
    error: float | None
    count: int


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures of many episodes. Those that failed or were cancelled are counted as such and nowhere else.

    Attributes:
        episodes: Episodes that count.
        unavailable: Episodes that failed for reasons outside the policy; they never count as a reward of 0.
        cancelled: Episodes that were cancelled because their group had enough.
        pass_rate: Share of correct episodes.
        reward: Mean return.
        tool_error_share: Share of the policy's calls that are errors, over all episodes.
        tool_error_share_correct: The same over correct episodes alone.
        calls: Mean number of the policy's calls in an episode.
        turns: Mean number of turns.
        broken_formats: Share of episodes that do not mark exactly one answer.
        statuses: How many calls of the policy went how, over all episodes that count.
        injected: The same for faults that a wrapper injected; they are in no share.
        ends: How many episodes ended how, those that do not count included.
    """

    episodes: int
    unavailable: int
    cancelled: int
    pass_rate: Estimate
    reward: Estimate
    tool_error_share: Estimate
    tool_error_share_correct: Estimate
    calls: Estimate
    turns: Estimate
    broken_formats: Estimate
    statuses: dict[str, int]
    injected: dict[str, int]
    ends: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON can hold them."""
        return asdict(self)

    def figures(self) -> dict[str, float | None]:
        """The figures by the names that training's metrics have; ``None`` for one without data."""
        total = self.episodes + self.unavailable + self.cancelled
        return {
            "episodes": float(self.episodes),
            "unavailable": self.unavailable / total if total else None,
            "cancelled": self.cancelled / total if total else None,
            "reward": self.reward.value,
            "pass_rate": self.pass_rate.value,
            "pass_rate_se": self.pass_rate.error,
            "tool_error_share": self.tool_error_share.value,
            "tool_error_share_correct": self.tool_error_share_correct.value,
            "broken_format": self.broken_formats.value,
            "turns": self.turns.value,
            "tool_calls": self.calls.value,
        }


def summarize(episodes: Iterable[Episode]) -> Summary:
    """Summarize episodes.

    Args:
        episodes: Any number of them, in any order.
    """
    everything = list(episodes)
    counted = [episode for episode in everything if episode.available]
    return Summary(
        episodes=len(counted),
        unavailable=sum(episode.failed for episode in everything),
        cancelled=sum(episode.cancelled for episode in everything),
        pass_rate=_mean(counted, [float(episode.correct) for episode in counted]),
        reward=_mean(counted, [episode.reward for episode in counted]),
        tool_error_share=_error_share(counted),
        tool_error_share_correct=_error_share([episode for episode in counted if episode.correct]),
        calls=_mean(counted, [float(episode.tool_calls) for episode in counted]),
        turns=_mean(counted, [float(episode.turns) for episode in counted]),
        broken_formats=_mean(counted, [float(episode.answer_tags != 1) for episode in counted]),
        statuses=_tally(str(status) for episode in counted for status in episode.statuses),
        injected=_tally(str(status) for episode in counted for status in episode.injected),
        ends=_tally(episode.end for episode in everything),
    )


def ratio(over: Sequence[float], under: Sequence[float], clusters: Sequence[Hashable]) -> Estimate:
    """Estimate the ratio of two sums, with the standard error of a ratio of clustered observations.

    With r the ratio and d = over - r * under summed within each of the m clusters, the error is
    ``sqrt(sum(d ** 2) * m / (m - 1)) / sum(under)`` (linearised; W. G. Cochran, Sampling Techniques, 3rd edition,
    section 6.3). With ``under`` 1 throughout and a cluster to each observation it is the error of a mean.

    Args:
        over: Numerators.
        under: Denominators, none below 0.
        clusters: Observations of the same cluster are not independent of one another.
    """
    total = sum(under)
    if not total:
        return Estimate(None, None, 0)
    value = sum(over) / total
    deviations: dict[Hashable, float] = {}
    for high, low, cluster in zip(over, under, clusters, strict=True):
        if low:
            deviations[cluster] = deviations.get(cluster, 0.0) + high - value * low
    m = len(deviations)
    if m < 2:
        return Estimate(value, None, round(total))
    return Estimate(value, math.sqrt(sum(d * d for d in deviations.values()) * m / (m - 1)) / total, round(total))


def _mean(episodes: Sequence[Episode], values: Sequence[float]) -> Estimate:
    return ratio(values, [1.0] * len(values), [_cluster(episode, at) for at, episode in enumerate(episodes)])


def _error_share(episodes: Sequence[Episode]) -> Estimate:
    return ratio(
        [float(sum(status.is_error for status in episode.statuses)) for episode in episodes],
        [float(episode.tool_calls) for episode in episodes],
        [_cluster(episode, at) for at, episode in enumerate(episodes)],
    )


def _cluster(episode: Episode, at: int) -> Hashable:
    # Episodes of one problem are not independent; one without a name stands for itself.
    return episode.problem_id or at


def _tally(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))
