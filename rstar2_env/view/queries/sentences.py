"""Sentences that summarize a run for the page, the terminal and exports, each with a filter for its episodes.

The filter selects the episodes that the sentence describes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rstar2_env.view.index import RunIndex
from rstar2_env.view.index.episode_columns import ERRORS
from rstar2_env.view.queries.figures import cached_figures
from rstar2_env.view.words import words

_ACTIVITIES = {
    "seconds/rollout": "rollout",
    "seconds/train": "training",
    "seconds/hand_over": "weight sync",
    "seconds/reward": "reward",
    "seconds/select": "selection",
    "seconds/advantage": "advantage",
    "seconds/wait": "waiting for the rollout",
}
"""The name that sentences use for each part of a step's time."""
_PLAYED_AHEAD = frozenset({"seconds/rollout", "seconds/reward", "seconds/select", "seconds/advantage"})
"""Parts of a step that run during training if episodes are played ahead. Sentences then leave out the time of these
parts, and include ``seconds/wait``."""
_COLLAPSING = {
    "policy/entropy": "entropy",
    "rollout/tokens": "tokens per episode",
    "kl": "KL divergence from the reference",
}
"""The name that sentences use for each metric that indicates a collapse of the policy."""
_MOST = 4


def sentences_of(index: RunIndex, metrics: Mapping[int, Mapping[str, float | None]]) -> list[dict[str, Any]]:
    """Return sentences about a run's training episodes and times; a sentence without data is left out.

    Args:
        index: Index of the run.
        metrics: Metrics of the run by step, from ``RunFacts.metrics``.

    Returns:
        For each sentence its ``text``; ``filter``, the filters that select its episodes (``None`` without episodes);
        ``parts``, which has the filters of the most frequent kinds of these episodes, by the kind's name; and
        ``metric``, the metric whose plot shows more (``None`` without a plot).
    """
    by_step = cached_figures(index, "by_step train")
    of_episodes = (
        _dropped(by_step),
        _failed(by_step),
        _after_error(by_step),
        _answered(index),
        _hacking(index, metrics),
    )
    of_figures = (
        (_collapse(metrics), next(iter(_collapsing(metrics)), "")),
        (_drift(metrics), _DRIFT),
        (_time(metrics), "seconds/rollout"),
    )
    return [
        *(
            {"text": text, "filter": chosen, "parts": parts, "metric": None}
            for text, chosen, parts in of_episodes
            if text
        ),
        *({"text": text, "filter": None, "parts": {}, "metric": metric} for text, metric in of_figures if text),
    ]


_Sentence = tuple[str, dict[str, str] | None, dict[str, dict[str, str]]]
_NOTHING: _Sentence = ("", None, {})
_DRIFT = "mismatch/logp_difference"


def _dropped(by_step: Mapping[str, Any]) -> _Sentence:
    reasons, played = _summed(by_step["reasons"]), sum(by_step["episodes"])
    if not reasons:
        return _NOTHING
    share = 100 * sum(reasons.values()) / played
    text = f"Dropped from training: {share:.0f}% of the episodes; reasons: {_ranked(reasons)}."
    return text, {"kept": "0"}, _kinds("reason", reasons)


def _failed(by_step: Mapping[str, Any]) -> _Sentence:
    calls = {name: count for name, count in _summed(by_step["statuses"]).items() if name != "unavailable"}
    errors = {name: count for name, count in calls.items() if name in ERRORS}
    if not errors:
        return _NOTHING
    share = 100 * sum(errors.values()) / sum(calls.values())
    text = f"Failed calls: {share:.1f}% of {sum(calls.values()):,}; most frequent: {_ranked(errors)}."
    return text, {"status": "error"}, _kinds("status", errors)


def _after_error(by_step: Mapping[str, Any]) -> _Sentence:
    followed = _summed(by_step["after_errors"])
    if not followed:
        return _NOTHING
    total = sum(followed.values())
    outcomes = words()["after_error"]
    parts = [f"{outcomes.get(name, name)} ({100 * count / total:.0f}%)" for name, count in followed.items()]
    text = f"After the first failed call of an episode: {', '.join(parts)}."
    return text, {"status": "error"}, _kinds("after_error", followed)


def _answered(index: RunIndex) -> _Sentence:
    found = cached_figures(index, "answered after a failed call")
    if not found["failed"]:
        return _NOTHING
    answered, correct = found["answered"], found["correct"]
    text = (
        f"Answered immediately after a failed call: {answered:,} of {found['failed']:,} episodes with a failed "
        f"call, {correct:,} of them correct."
    )
    return text, {"last": "error", "end": "answered"}, {}


def _hacking(index: RunIndex, metrics: Mapping[int, Mapping[str, float | None]]) -> _Sentence:
    found = cached_figures(index, "rewarded")
    if not found["correct"] or not found["wrong"]:
        return _NOTHING
    rewarded = found["rewarded"]
    signs = [
        f"{rewarded:,} of {found['wrong']:,} wrong episodes have at least the mean reward of correct ones "
        f"({found['reward']:.3g})"
    ]
    if found["without_calls"] is not None:
        signs.append(f"{found['without_calls']:,} of {found['correct']:,} correct episodes made no call")
    rewards, held_out = _points(metrics, "rollout/reward"), _points(metrics, "eval/pass_rate")
    if len(rewards) > 1 and len(held_out) > 1:
        (_, first), (_, last) = rewards[0], rewards[-1]
        (start, before), (end, after) = held_out[0], held_out[-1]
        signs.append(
            f"the reward in training changed by {last - first:+.3g} (step {rewards[0][0]} to {rewards[-1][0]}), and "
            f"the held-out success by {100 * (after - before):+.1f} points (step {start} to {end})"
        )
    chosen = {"correct": "0", "min_reward": repr(found["reward"])} if rewarded else None
    return f"Check for reward hacking: {'; '.join(signs)}.", chosen, {}


def _collapse(metrics: Mapping[int, Mapping[str, float | None]]) -> str:
    parts = []
    for name, points in _collapsing(metrics).items():
        (start, first), (end, last) = points[0], points[-1]
        parts.append(f"{_COLLAPSING[name]} {last:.3g} at step {end} ({first:.3g} at step {start})")
    return f"Check for collapse: {', '.join(parts)}." if parts else ""


def _collapsing(metrics: Mapping[int, Mapping[str, float | None]]) -> dict[str, list[tuple[int, float]]]:
    """Return the points (step, value) of each metric in ``_COLLAPSING`` that has at least two points."""
    return {name: points for name in _COLLAPSING if len(points := _points(metrics, name)) > 1}


def _drift(metrics: Mapping[int, Mapping[str, float | None]]) -> str:
    points = _points(metrics, _DRIFT)
    if not points:
        return ""
    (step, last), (first_step, first) = points[-1], points[0]
    largest_step, largest = max(points, key=lambda point: (point[1], -point[0]))
    return (
        f"Engine against trainer: at step {step}, the log-probability of a token differs by {last:.3g} on average; "
        f"{first:.3g} at step {first_step}, at most {largest:.3g} (step {largest_step})."
    )


def _points(metrics: Mapping[int, Mapping[str, float | None]], name: str) -> list[tuple[int, float]]:
    return [(step, value) for step, figures in metrics.items() if (value := figures.get(name)) is not None]


def _time(metrics: Mapping[int, Mapping[str, float | None]]) -> str:
    sums = dict.fromkeys(_ACTIVITIES, 0.0)
    steps = 0
    for figures in metrics.values():
        steps += "seconds/rollout" in figures or "seconds/train" in figures
        ahead = figures.get("seconds/wait") is not None
        for name in sums:
            if not (ahead and name in _PLAYED_AHEAD):
                sums[name] += figures.get(name) or 0.0
    total = sum(sums.values())
    if not total:
        return ""
    ranked = sorted(((value, _ACTIVITIES[name]) for name, value in sums.items()), reverse=True)
    parts = [f"{100 * value / total:.0f}% {activity}" for value, activity in ranked if value >= 0.005 * total]
    return f"Time per step: {total / steps:.3g} s on average ({', '.join(parts)})."


def _summed(series: Mapping[str, list[int]]) -> dict[str, int]:
    """Return the sum of each series, the largest first."""
    sums = {name: sum(counts) for name, counts in series.items()}
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


def _kinds(name: str, counts: Mapping[str, int]) -> dict[str, dict[str, str]]:
    return {kind: {name: kind} for kind in list(counts)[:_MOST]}


def _ranked(counts: Mapping[str, int]) -> str:
    parts = [f"{name} {count:,}" for name, count in list(counts.items())[:_MOST]]
    others = sum(list(counts.values())[_MOST:])
    return ", ".join([*parts, f"others {others:,}"] if others else parts)
