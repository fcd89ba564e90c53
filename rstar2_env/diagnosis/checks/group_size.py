"""Check for groups that are so small that their episodes often have equal rewards."""

from __future__ import annotations

from math import ceil
from statistics import median

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import RunRecord, StepData
from rstar2_env.diagnosis.spells import each_step, rolling, spell

_SMALL = 3
_GROUPS = 30
"""Number of groups over which the share of groups with equal rewards is averaged. A group has at least 2 episodes, so
30 groups have at least 60 episodes, and the standard error of their pass rate is at most about .06."""
_MISSED = 0.3


def _equal(step: StepData) -> float | None:
    """Return the probability that, at the step's pass rate, chance alone makes a group all right or all wrong.

    The result is ``None`` if a group has more than ``_SMALL`` graded episodes, or if every group has fewer than two. It
    is 0 if the pass rate is 0 or 1: then the reason is not chance.
    """
    verdicts = [[one.correct for one in group if one.correct is not None] for group in step.groups()]
    groups = [group for group in verdicts if len(group) > 1]
    if not groups or max(map(len, groups)) > _SMALL:
        return None
    rate = sum(map(sum, groups)) / sum(map(len, groups))
    size = max(map(len, groups))
    return float(rate**size + (1 - rate) ** size) if 0 < rate < 1 else 0.0


def _number(step: StepData) -> int:
    return len(step.groups())


def _size(step: StepData) -> int:
    return max(map(len, step.groups()), default=0)


def _look(run: RunRecord) -> Evidence | None:
    points = each_step(run, "groups/equal", _equal)
    groups = median([step.once("groups/number", _number) for step in run.steps] or [0])
    window = max(1, ceil(_GROUPS / max(1, groups)))
    found = spell(rolling(points, window), lambda share: share > _MISSED)
    if found is None:
        return None
    size = max(step.once("groups/size", _size) for step in run.steps)
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"Groups have {size} episodes. At the pass rate of these steps, {100 * found.mean:.0f} % of such groups "
        "have equal rewards by chance, so nothing is learned from them.",
        figures={"episodes of a group": size, "equal by chance": found.mean},
        episodes=run.examples(found.since, found.until, lambda episode: episode.reason == "equal"),
    )


register(
    RunCheck(
        name="group_small",
        title="Groups are too small",
        looks_at="the episodes of each group, over enough steps to include 30 groups",
        rule="groups have at most 3 episodes, and at the pass rate of these steps more than 30 % of them would have "
        "equal rewards by chance: at a pass rate of 0.5, two episodes have equal rewards half of the time, and eight "
        "episodes 1 % of the time",
        severity="warning",
        cause="A group size that was chosen to save memory or time.",
        change=("--set rollout.group_size=8", "--set rollout.problems_per_step=FEWER"),
        otherwise="Problems that are always or never solved: their rewards are equal in larger groups too.",
        needs=("episodes",),
        look=_look,
        effects=("few_signals",),
    ),
)
