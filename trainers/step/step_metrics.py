"""Metrics of one step in one process, as sums and counts, over played episodes, kept episodes and dropped episodes.

A metric is reported even if its sum is 0: a share of 0 in 64 episodes is an observation that the mean over several
steps needs. Not covered: metrics of single episodes (``FIGURES`` in ``rstar2_env/core/episode_metrics.py``), and the
metrics of the optimizer's steps (``sums.add`` in ``trainers/backends/trl/trainer.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rstar2_env.core.episode import Episode
from rstar2_env.core.episode_metrics import ENDS, STEP_FIGURES, MetricSums, figure_sums
from rstar2_env.core.status import ToolStatus

from .batch import PlayedGroup

NO_SIGNAL = ("none_correct", "all_correct", "unavailable", "not_selected")
"""Reasons why no episode of a group has an advantage other than 0: no correct episode, only correct ones, only
unavailable ones, or the selector's choice."""

FigureNames = set[tuple[str, str]]
"""The ends, the reward components and the reasons for dropping episodes that occur in a step, as pairs (kind, name).

The kind is ``end``, ``component`` or ``reason``; a metric is named after each pair."""


def names_in(groups: Sequence[PlayedGroup]) -> FigureNames:
    """Return the pairs (kind, name) of ``FigureNames`` that occur in ``groups``.

    Processes exchange the pairs, so that all processes report the same metrics.
    """
    names = {("end", episode.end) for group in groups for episode in group.episodes}
    names |= {("component", name) for group in groups for episode in group.episodes for name in episode.rewards}
    return names | {("reason", reason) for group in groups for reason in group.reasons if reason}


def step_metrics(
    groups: Sequence[PlayedGroup], missing: int, names: Collection[tuple[str, str]], *, first: bool, left: int = 0
) -> dict[str, tuple[float, float]]:
    """Return sum and count of each metric.

    Args:
        groups: The groups of this process.
        missing: Number of missing groups, over all processes.
        names: Every pair from ``names_in`` that has occurred in the run so far, on any process.
        first: Whether this is the first process; it alone reports numbers that are already totals over processes.
        left: Number of groups that the step carried over to the next one, over all processes.

    Returns:
        The metrics are:

        - ``rollout/...`` over all episodes and ``kept/...`` over the chosen ones: ``episodes`` (number of available
          episodes), and the metrics of ``episode_sums``;
        - ``kept/advantage``: mean of the absolute values;
        - ``dropped/<reason>``: shares of all episodes;
        - ``rollout/groups_rejected``: share of the groups;
        - ``rollout/groups_refilled``, ``groups_replaced``, ``groups_missing``, ``groups_carried``: numbers of groups;
        - ``groups/signal`` and ``groups/<reason>``, for each reason in ``NO_SIGNAL``: numbers of groups.
    """
    ends, components, reasons = (
        sorted(name for kind, name in names if kind == wanted) for wanted in ("end", "component", "reason")
    )
    once = float(first)
    played = [episode for group in groups for episode in group.episodes]
    kept = [episode for group in groups for episode in group.chosen]
    found: dict[str, tuple[float, float]] = {}
    for prefix, episodes in (("rollout", played), ("kept", kept)):
        found[f"{prefix}/episodes"] = (float(sum(episode.available for episode in episodes)), once)
        for name, figure in episode_sums(episodes, ends, components).items():
            found[f"{prefix}/{name}"] = figure
    dropped_for = [reason for group in groups for reason in group.reasons]
    for reason in reasons:
        found[f"dropped/{reason}"] = (float(dropped_for.count(reason)), float(len(dropped_for)))
    sizes = [abs(value) for group in groups for value in group.advantages]
    found["kept/advantage"] = (float(sum(sizes)), float(len(sizes)))
    found["rollout/groups_rejected"] = (float(sum(not group.kept for group in groups)), float(len(groups)))
    found["rollout/groups_refilled"] = (float(sum(group.round > 0 for group in groups)), once)
    found["rollout/groups_replaced"] = (float(sum(group.copies for group in groups)), once)
    found["rollout/groups_missing"] = (missing * once, once)
    found["rollout/groups_carried"] = (left * once, once)
    for name, count in _signals(groups).items():
        found[f"groups/{name}"] = (float(count), once)
    return found


def _signals(groups: Sequence[PlayedGroup]) -> dict[str, int]:
    """Count the groups with a signal (an advantage other than 0), and the others by the reason why they have none."""
    counts = dict.fromkeys(("signal", *NO_SIGNAL), 0)
    for group in groups:
        counted = [episode.correct for episode in group.episodes if episode.available]
        if group.kept and any(group.advantages):
            counts["signal"] += 1
        elif not counted:
            counts["unavailable"] += 1
        elif all(counted):
            counts["all_correct"] += 1
        elif not any(counted):
            counts["none_correct"] += 1
        else:
            counts["not_selected"] += 1
    return counts


def episode_sums(episodes: Sequence[Episode], ends: Collection[str], components: Collection[str]) -> MetricSums:
    """Return sum and count of each metric over the given episodes.

    Args:
        episodes: Any episodes.
        ends: Ends to report, even if they do not occur, in addition to ``ENDS``.
        components: Components of the reward to report, even if they do not occur.

    Returns:
        ``unavailable``, ``cancelled`` and ``end/<name>`` over all episodes; ``STEP_FIGURES`` and ``reward/<component>``
        over available episodes; ``status/<name>`` over the policy's calls in available episodes.
    """
    counted = [episode for episode in episodes if episode.available]
    statuses = [status for episode in counted for status in episode.statuses]
    every = float(len(episodes))
    found = figure_sums(counted, STEP_FIGURES)
    found["unavailable"] = (float(sum(episode.failed for episode in episodes)), every)
    found["cancelled"] = (float(sum(episode.cancelled for episode in episodes)), every)
    for name in sorted({*ENDS, *ends, *(episode.end for episode in episodes)}):
        found[f"end/{name}"] = (float(sum(episode.end == name for episode in episodes)), every)
    for status in ToolStatus:
        found[f"status/{status}"] = (float(statuses.count(status)), float(len(statuses)))
    for name in sorted({*components, *(name for episode in counted for name in episode.rewards)}):
        values = [episode.rewards[name] for episode in counted if name in episode.rewards]
        found[f"reward/{name}"] = (float(sum(values)), float(len(values)))
    return found
