"""Summary sentences about a run, each with the filter that selects its episodes, for the page, terminal and exports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rstar2_env.view.index import RunIndex
from rstar2_env.view.index.facts import ERRORS
from rstar2_env.view.queries.figures import cached_figures

_ACTIVITIES = {
    "seconds/rollout": "rollout",
    "seconds/train": "training",
    "seconds/hand_over": "weight sync",
    "seconds/reward": "reward",
    "seconds/select": "selection",
    "seconds/advantage": "advantage",
    "seconds/wait": "waiting",
}
"""Parts of a step's time, and their names in sentences."""
_AFTER_ERROR = {
    "ok": "the next call worked",
    "failed": "the next call failed too",
    "answered": "the policy answered",
    "ended": "the episode ended",
}
"""Texts about the outcome of the call after an episode's first failed call."""
_MOST = 4


def sentences_of(index: RunIndex, metrics: Mapping[int, Mapping[str, float | None]]) -> list[dict[str, Any]]:
    """Return sentences about the training episodes and the time of a run; a sentence without data is left out.

    Args:
        index: Index of the run.
        metrics: Figures of the run by step, from ``RunFacts.metrics``.

    Returns:
        For each sentence its ``text`` and ``filter``, the filters of its episodes (``None`` without episodes).
    """
    by_step = cached_figures(index, "by_step train")
    made = (_dropped(by_step), _failed(by_step), _after_error(by_step), _answered(index), _time(metrics))
    return [{"text": text, "filter": chosen} for text, chosen in made if text]


_Sentence = tuple[str, dict[str, str] | None]
_NOTHING: _Sentence = ("", None)


def _dropped(by_step: Mapping[str, Any]) -> _Sentence:
    reasons, played = _summed(by_step["reasons"]), sum(by_step["episodes"])
    if not reasons:
        return _NOTHING
    share = 100 * sum(reasons.values()) / played
    return f"Dropped from training: {share:.0f}% of the episodes; reasons: {_ranked(reasons)}.", {"kept": "0"}


def _failed(by_step: Mapping[str, Any]) -> _Sentence:
    calls = {name: count for name, count in _summed(by_step["statuses"]).items() if name != "unavailable"}
    errors = {name: count for name, count in calls.items() if name in ERRORS}
    if not errors:
        return _NOTHING
    share = 100 * sum(errors.values()) / sum(calls.values())
    return f"Failed calls: {share:.1f}% of {sum(calls.values()):,}; most frequent: {_ranked(errors)}.", {
        "status": "error"
    }


def _after_error(by_step: Mapping[str, Any]) -> _Sentence:
    followed = _summed(by_step["after_errors"])
    if not followed:
        return _NOTHING
    total = sum(followed.values())
    parts = [f"in {100 * count / total:.0f}% {_AFTER_ERROR.get(name, name)}" for name, count in followed.items()]
    return f"After the first failed call of an episode: {', '.join(parts)}.", {"status": "error"}


def _answered(index: RunIndex) -> _Sentence:
    found = cached_figures(index, "answered after error")
    if not found["calls"]:
        return _NOTHING
    answered, correct = found["answered"], found["correct"]
    many = "1 episode" if answered == 1 else f"{answered:,} episodes"
    text = f"Answered right after a failed call: {many} of {found['calls']:,} with calls, {correct:,} of them correct."
    return text, {"last": "error", "end": "answered"}


def _time(metrics: Mapping[int, Mapping[str, float | None]]) -> _Sentence:
    sums = dict.fromkeys(_ACTIVITIES, 0.0)
    steps = 0
    for figures in metrics.values():
        steps += "seconds/rollout" in figures or "seconds/train" in figures
        for name in sums:
            sums[name] += figures.get(name) or 0.0
    total = sum(sums.values())
    if not total:
        return _NOTHING
    ranked = sorted(((value, _ACTIVITIES[name]) for name, value in sums.items()), reverse=True)
    parts = [f"{100 * value / total:.0f}% {words}" for value, words in ranked if value >= 0.005 * total]
    return f"Time of a step: {total / steps:.3g} s on average: {', '.join(parts)}.", None


def _summed(series: Mapping[str, list[int]]) -> dict[str, int]:
    """Return the sum of each series, the largest first."""
    sums = {name: sum(counts) for name, counts in series.items()}
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


def _ranked(counts: Mapping[str, int]) -> str:
    parts = [f"{name} {count:,}" for name, count in list(counts.items())[:_MOST]]
    others = sum(list(counts.values())[_MOST:])
    return ", ".join([*parts, f"others {others:,}"] if others else parts)
