"""Summary of many episodes: every figure with its standard error.

Covered: standard errors that take into account that episodes of the same problem are not independent. Not covered: how
episodes are played (``rstar2_env.evaluation.run``), intervals, and figures of several samples of a problem
(``rstar2_env.evaluation.figures.intervals``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rstar2_env.core.episode import Episode
from rstar2_env.core.episode_metrics import FIGURES
from rstar2_env.core.row import FloatArray
from rstar2_env.evaluation.figures.statistics import Interval, effective_trials, wilson
from rstar2_env.evaluation.figures.tally import EpisodeTally, figure_columns


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean or a share with its standard error.

    Attributes:
        value: The estimate; ``None`` without data.
        error: Standard error of the estimate; ``None`` with fewer than two independent observations.
        count: Number of observations: episodes or calls.
        clusters: Number of independent groups of observations: problems.
    """

    value: float | None
    error: float | None
    count: int
    clusters: int = 0

    def share_interval(self) -> Interval | None:
        """Return the Wilson interval of a share; ``None`` with fewer than two independent observations."""
        if self.value is None or self.error is None:
            return None
        value = min(max(self.value, 0.0), 1.0)  # a sum of rounded numbers may exceed 1
        return wilson(value, effective_trials(value, self.error, self.count, self.clusters))


_FIELDS = {"tool_calls": "calls", "broken_format": "broken_formats"}
"""For each figure that ``Summary`` holds in a field of another name: the name of the field."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures (counts, means and shares) of many episodes.

    Episodes that failed, were cancelled or are unusable do not count: the means leave them out.

    Attributes:
        episodes: Number of episodes that count.
        unavailable: Number of episodes that failed for reasons outside the policy; they never count as a reward of 0.
        cancelled: Number of episodes that were cancelled because their group no longer needed them.
        unusable: Number of episodes with a reply that could not be played; ``ends`` has the reasons.
        pass_rate: Share of correct episodes.
        reward: Mean return.
        tool_error_share: Share of the policy's calls that are errors.
        tool_error_share_correct: Share of the policy's calls in correct episodes that are errors.
        calls: Mean number of the policy's calls in an episode.
        turns: Mean number of turns.
        broken_formats: Share of episodes that do not mark exactly one answer.
        code_share: Share of episodes with a tool call.
        code_share_correct: Share of the correct episodes that have a tool call.
        tokens: Mean number of tokens that the policy wrote, over the episodes for which this number is known.
        repetition: Mean share of an episode's four-word sequences that repeat an earlier one.
        truncated: Share of episodes that exhausted a budget of turns, tokens or time.
        statuses: Number of the policy's calls by status, over all episodes that count.
        statuses_correct: Number of calls by status, over correct episodes.
        injected: Number of faults that a wrapper injected, by status; the shares of errors do not count them.
        usage: Total requests, tokens and cost of the episodes, by name; empty if the player does not count them.
        ends: Number of episodes by end, including episodes that do not count.
        rewards: Mean of each component of the reward, and of each score, over the episodes that have it.
    """

    episodes: int
    unavailable: int
    cancelled: int
    unusable: int
    pass_rate: Estimate
    reward: Estimate
    tool_error_share: Estimate
    tool_error_share_correct: Estimate
    calls: Estimate
    turns: Estimate
    broken_formats: Estimate
    code_share: Estimate
    code_share_correct: Estimate
    tokens: Estimate
    repetition: Estimate
    truncated: Estimate
    statuses: dict[str, int]
    statuses_correct: dict[str, int]
    injected: dict[str, int]
    usage: dict[str, float]
    ends: dict[str, int]
    rewards: dict[str, Estimate]

    def estimate(self, name: str) -> Estimate:
        """Return the estimate of a figure by its name in ``FIGURES``."""
        found: Estimate = getattr(self, _FIELDS.get(name, name))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, by name, as JSON values."""
        return asdict(self)

    def figures(self) -> dict[str, float | None]:
        """Return the figures under the metric names of training; ``None`` for a figure without data.

        Returns:
            ``episodes`` (the number of episodes that count), ``unavailable`` and ``cancelled`` (shares of all
            episodes), the figures of ``FIGURES``, ``pass_rate_se`` (the standard error of ``pass_rate``),
            ``reward/<component>``, and the shares ``status/<name>`` of calls and ``end/<name>`` of episodes.
        """
        total = self.episodes + self.unavailable + self.cancelled + self.unusable
        return {
            "episodes": float(self.episodes),
            "unavailable": self.unavailable / total if total else None,
            "cancelled": self.cancelled / total if total else None,
            **{name: self.estimate(name).value for name in FIGURES},
            "pass_rate_se": self.pass_rate.error,
            **{f"reward/{name}": estimate.value for name, estimate in self.rewards.items()},
            **_shares("status", self.statuses),
            **_shares("end", self.ends),
        }


def summarize(episodes: Iterable[Episode]) -> Summary:
    """Summarize episodes.

    Args:
        episodes: The episodes, in any order.
    """
    tally = EpisodeTally()
    for episode in episodes:
        tally.add(episode)
    return summary_of(tally)


def summary_of(tally: EpisodeTally) -> Summary:
    """Summarize an evaluation from the counts of its episodes."""
    estimates = {name: ratio(*columns) for name, columns in figure_columns(list(tally.problems.values())).items()}
    return Summary(
        episodes=tally.episodes,
        unavailable=tally.failed,
        cancelled=tally.cancelled,
        unusable=tally.unusable,
        **{_FIELDS.get(name, name): estimates[name] for name in FIGURES},
        statuses=_sorted(tally.statuses),
        statuses_correct=_sorted(tally.statuses_correct),
        injected=_sorted(tally.injected),
        usage=dict(tally.usage),
        ends=_sorted(tally.ends),
        rewards={name.removeprefix("reward/"): one for name, one in estimates.items() if name not in FIGURES},
    )


def ratio(over: FloatArray, under: FloatArray) -> Estimate:
    """Estimate the ratio of two sums, with the standard error of a ratio of clustered observations.

    Let r be the ratio, m the number of clusters whose ``under`` is not 0, and ``d = over - r * under`` in each of these
    clusters. The standard error is ``sqrt(sum(d ** 2) * m / (m - 1)) / sum(under)`` (linearised; W. G. Cochran,
    Sampling Techniques, 3rd edition, section 6.3). If every ``under`` is 1, this is the standard error of a mean.

    Args:
        over: Numerator of each cluster; a cluster is usually a problem.
        under: Denominator of each cluster, at least 0.
    """
    total = float(under.sum())
    if not total:
        return Estimate(None, None, 0)
    value = float(over.sum()) / total
    deviations = (over - value * under)[under != 0]
    m = len(deviations)
    error = math.sqrt(float(deviations @ deviations) * m / (m - 1)) / total if m > 1 else None
    return Estimate(value, error, round(total), m)


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def _shares(prefix: str, counts: Mapping[str, int]) -> dict[str, float]:
    total = sum(counts.values())
    return {f"{prefix}/{name}": count / total for name, count in counts.items()}
