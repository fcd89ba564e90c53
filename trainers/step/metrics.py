"""Metrics over episodes, as a flat mapping of names to numbers for trackers and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rstar2_env.core.episode import Episode
from rstar2_env.evaluation.figures.summary import Estimate, summarize


def metrics(episodes: Sequence[Episode]) -> dict[str, float]:
    """Compute metrics over episodes; a metric without any data is NaN.

    Returns:
        ``episodes`` (that count), ``unavailable`` and ``cancelled`` (shares of all), ``reward``, ``pass_rate`` and its
        standard error ``pass_rate_se``, ``tool_error_share``, ``tool_error_share_correct`` (over correct episodes),
        ``broken_format``, ``turns``, ``tool_calls``, ``tokens`` (the policy's, a mean), and the shares
        ``status/<name>`` of calls and ``end/<name>`` of episodes.
    """
    summary = summarize(episodes)
    counted = [episode for episode in episodes if episode.available]
    figures = {
        "episodes": float(summary.episodes),
        "unavailable": summary.unavailable / len(episodes) if episodes else math.nan,
        "cancelled": summary.cancelled / len(episodes) if episodes else math.nan,
        "reward": _value(summary.reward),
        "pass_rate": _value(summary.pass_rate),
        "pass_rate_se": math.nan if summary.pass_rate.error is None else summary.pass_rate.error,
        "tool_error_share": _value(summary.tool_error_share),
        "tool_error_share_correct": _value(summary.tool_error_share_correct),
        "broken_format": _value(summary.broken_formats),
        "turns": _value(summary.turns),
        "tool_calls": _value(summary.calls),
        "tokens": sum(episode.policy_tokens for episode in counted) / len(counted) if counted else math.nan,
    }
    return figures | _shares("status", summary.statuses) | _shares("end", summary.ends)


def _value(estimate: Estimate) -> float:
    return math.nan if estimate.value is None else estimate.value


def _shares(prefix: str, counts: dict[str, int]) -> dict[str, float]:
    total = sum(counts.values())
    return {f"{prefix}/{name}": count / total for name, count in counts.items()}
