"""Figures of many episodes as sums and counts, which add up over processes and steps.

Every figure that was looked for is there, also where nothing was found: a share of 0 in 64 episodes is an observation
that the mean over several steps needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from rstar2_env.core.episode import Episode
from rstar2_env.core.status import ToolStatus

Figures = dict[str, tuple[float, float]]

ENDS = ("answered", "no_answer", "turns", "tokens", "time", "terminated", "truncated", "unavailable", "cancelled")
"""How an episode may end; an environment may have further words."""


def figures(episodes: Sequence[Episode], *, ends: Collection[str] = (), components: Collection[str] = ()) -> Figures:
    """Sum and count of each figure.

    Args:
        episodes: Any episodes; those that failed or were cancelled are counted as such and nowhere else.
        ends: Further ways to end that were seen anywhere.
        components: Components of the reward that were seen anywhere.

    Returns:
        ``unavailable``, ``cancelled`` and ``end/<name>`` over all episodes; ``reward``, ``reward/<component>``,
        ``pass_rate``, ``broken_format``, ``turns``, ``tool_calls`` and ``tokens`` (the policy's) over those that count;
        ``tool_error_share``, ``tool_error_share_correct`` (in correct episodes) and ``status/<name>`` over the policy's
        calls in them.
    """
    counted = [episode for episode in episodes if episode.available]
    correct = [episode for episode in counted if episode.correct]
    statuses = [status for episode in counted for status in episode.statuses]
    found = {
        "unavailable": _share(episode.failed for episode in episodes),
        "cancelled": _share(episode.cancelled for episode in episodes),
        "reward": _share(episode.reward for episode in counted),
        "pass_rate": _share(episode.correct for episode in counted),
        "broken_format": _share(episode.answer_tags != 1 for episode in counted),
        "turns": _share(episode.turns for episode in counted),
        "tool_calls": _share(episode.tool_calls for episode in counted),
        "tokens": _share(episode.policy_tokens for episode in counted),
        "tool_error_share": _errors(counted),
        "tool_error_share_correct": _errors(correct),
    }
    for name in sorted({*ENDS, *ends, *(episode.end for episode in episodes)}):
        found[f"end/{name}"] = _share(episode.end == name for episode in episodes)
    for status in ToolStatus:
        found[f"status/{status}"] = _share(one is status for one in statuses)
    for name in sorted({*components, *(name for episode in counted for name in episode.rewards)}):
        found[f"reward/{name}"] = _share(episode.rewards[name] for episode in counted if name in episode.rewards)
    return found


def _share(values: Iterable[float]) -> tuple[float, float]:
    listed = [float(value) for value in values]
    return sum(listed), float(len(listed))


def _errors(episodes: Sequence[Episode]) -> tuple[float, float]:
    return _share(status.is_error for episode in episodes for status in episode.statuses if status.counts)
