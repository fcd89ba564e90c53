"""Summary of many episodes: pass rate, tool errors, turns, broken formats, each with its standard error.

Covered: means and shares over episodes, with errors that take into account that episodes of one problem, or calls of
one episode, belong together. Not covered: how the episodes were played (``rstar2_env.evaluation.run``), figures of
several samples of a problem and intervals (``rstar2_env.evaluation.figures.intervals``).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rstar2_env.core.episode import Episode
from rstar2_env.evaluation.figures.tally import COUNTS, SHARES, Tally, reward_columns


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
        unusable: Episodes with a reply that could not be played; ``ends`` says why.
        pass_rate: Share of correct episodes.
        reward: Mean return.
        tool_error_share: Share of the policy's calls that are errors, over all episodes.
        tool_error_share_correct: The same over correct episodes alone.
        calls: Mean number of the policy's calls in an episode.
        turns: Mean number of turns.
        broken_formats: Share of episodes that do not mark exactly one answer.
        code_share: Share of episodes with a call.
        code_share_correct: The same over correct episodes alone.
        tokens: Mean number of tokens that the policy wrote, over episodes of which it is known.
        repetition: Mean share of four-word sequences that stood in the episode before.
        truncated: Share of episodes at whose end a budget was used up.
        statuses: How many calls of the policy went how, over all episodes that count.
        statuses_correct: The same over correct episodes alone.
        injected: The same for faults that a wrapper injected; they are in no share.
        usage: What all episodes took together, where the player counts it: requests, tokens, money.
        ends: How many episodes ended how, those that do not count included.
        rewards: The mean of each component of the reward, and of each score, over the episodes that have it.
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

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON can hold them."""
        return asdict(self)

    def figures(self) -> dict[str, float | None]:
        """The figures by the names that training's metrics have; ``None`` for one without data."""
        total = self.episodes + self.unavailable + self.cancelled + self.unusable
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
            **{f"reward/{name}": estimate.value for name, estimate in self.rewards.items()},
        }


def summarize(episodes: Iterable[Episode]) -> Summary:
    """Summarize episodes.

    Args:
        episodes: Any number of them, in any order.
    """
    tally = Tally()
    for episode in episodes:
        tally.add(episode)
    return summary_of(tally)


def summary_of(tally: Tally) -> Summary:
    """Summarize what episodes came to."""
    problems = list(tally.problems.values())
    columns = {name: [problem.counts[place] for problem in problems] for place, name in enumerate(COUNTS)}

    def share(name: str) -> Estimate:
        over, under = SHARES[name]
        return ratio(columns[over], columns[under], range(len(problems)))

    return Summary(
        episodes=tally.episodes,
        unavailable=tally.failed,
        cancelled=tally.cancelled,
        unusable=tally.unusable,
        pass_rate=share("pass_rate"),
        reward=share("reward"),
        tool_error_share=share("tool_error_share"),
        tool_error_share_correct=share("tool_error_share_correct"),
        calls=share("tool_calls"),
        turns=share("turns"),
        broken_formats=share("broken_format"),
        code_share=share("code_share"),
        code_share_correct=share("code_share_correct"),
        tokens=share("tokens"),
        repetition=share("repetition"),
        truncated=share("truncated"),
        statuses=_sorted(tally.statuses),
        statuses_correct=_sorted(tally.statuses_correct),
        injected=_sorted(tally.injected),
        usage=dict(tally.usage),
        ends=_sorted(tally.ends),
        rewards={
            name.removeprefix("reward/"): ratio(over, under, range(len(problems)))
            for name, (over, under) in reward_columns(problems).items()
        },
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


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))
