"""Figures of one step on one process, as sums and counts: what was played, what was kept, and why the rest was not."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .batch import Group
from .episode_figures import Figures, figures

Words = set[tuple[str, str]]
"""Names of figures that are not known beforehand, each with its kind: ``end``, ``component`` or ``reason``."""


def words_of(groups: Sequence[Group]) -> Words:
    """The names that occur in some groups; every process must hear of those of the others to count what it lacks."""
    words = {("end", episode.end) for group in groups for episode in group.episodes}
    words |= {("component", name) for group in groups for episode in group.episodes for name in episode.rewards}
    return words | {("reason", reason) for group in groups for reason in group.reasons if reason}


def step_figures(
    groups: Sequence[Group], missing: int, words: Collection[tuple[str, str]], *, first: bool, left: int = 0
) -> Figures:
    """Sum and count of each metric.

    Args:
        groups: The groups of this process.
        missing: Groups that are missing over all processes.
        words: Every name that was seen on any process.
        first: Whether this is the first process; what is added up over processes counts once a step.
        left: Groups that the step carried over to the next one, over all processes.

    Returns:
        ``rollout/...`` over all episodes and ``kept/...`` over those that train, named as in ``figures``, with
        ``episodes`` (that count), and ``kept/advantage`` (mean absolute one); ``dropped/<reason>``, shares of all
        episodes; ``rollout/groups_rejected`` (a share), ``groups_refilled``, ``groups_replaced``, ``groups_missing``,
        ``groups_carried`` (numbers).
    """
    ends, components, reasons = (
        sorted(word for kind, word in words if kind == wanted) for wanted in ("end", "component", "reason")
    )
    once = float(first)
    played = [episode for group in groups for episode in group.episodes]
    kept = [episode for group in groups for episode in group.chosen]
    found: Figures = {}
    for prefix, episodes in (("rollout", played), ("kept", kept)):
        found[f"{prefix}/episodes"] = (float(sum(episode.available for episode in episodes)), once)
        for name, figure in figures(episodes, ends=ends, components=components).items():
            found[f"{prefix}/{name}"] = figure
    told = [reason for group in groups for reason in group.reasons]
    for reason in reasons:
        found[f"dropped/{reason}"] = (float(told.count(reason)), float(len(told)))
    sizes = [abs(value) for group in groups for value in group.advantages]
    found["kept/advantage"] = (float(sum(sizes)), float(len(sizes)))
    found["rollout/groups_rejected"] = (float(sum(not group.kept for group in groups)), float(len(groups)))
    found["rollout/groups_refilled"] = (float(sum(group.round > 0 for group in groups)), once)
    found["rollout/groups_replaced"] = (float(sum(group.copies for group in groups)), once)
    found["rollout/groups_missing"] = (missing * once, once)
    found["rollout/groups_carried"] = (left * once, once)
    return found
