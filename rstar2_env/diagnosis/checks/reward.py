"""Checks for a reward that is constant, does not depend on the answer, depends on the format only, or is exploited."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import EpisodeDigest, RunRecord, StepData
from rstar2_env.diagnosis.spells import LEAST, each_step, rolling, spell

_SAME = 1e-9
_WINDOW = 5
_LONGEST = 10
_BLIND, _PART = 0.15, 0.25
_PAYS = 0.5
_FALL = 0.05


def _spread(values: list[float]) -> float:
    return max(values) - min(values) if values else 0.0


def _spread_of(step: StepData) -> float | None:
    """Return the largest minus the smallest reward of a step.

    The result is ``None`` if all episodes are known to be right, or all to be wrong.
    """
    counted = [one for one in step.episodes if one.available]
    verdicts = {one.correct for one in counted}
    return _spread([one.reward for one in counted]) if len(verdicts) > 1 or None in verdicts else None


def _ungraded(step: StepData) -> float:
    return float(any(one.correct is None for one in step.episodes))


def _first_reward(step: StepData) -> float | None:
    return next((one.reward for one in step.episodes if one.available), None)


def constant_reward(run: RunRecord) -> Evidence | None:
    """Return the evidence that right and wrong episodes have one and the same reward, or ``None``."""
    points = each_step(run, "reward/spread", _spread_of)
    rewards = dict(each_step(run, "reward/first", _first_reward))
    found = spell(points, lambda spread: spread <= _SAME)
    if found is None:
        return None
    shown = rewards[found.since]
    ungraded = dict(each_step(run, "reward/ungraded", _ungraded))
    steps = [step for step in rewards if found.since <= step <= (run.last if found.until is None else found.until)]
    unknown = any(ungraded[step] for step in steps)
    if unknown and _spread([rewards[step] for step in steps]) > _SAME:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"Every episode of {len(found.values)} steps has the reward {shown:g}"
        f"{'; which of them are right is not recorded' if unknown else ', right or wrong'}.",
        figures={"reward": shown},
        episodes=run.examples(found.since, found.until, lambda episode: bool(episode.correct), 2)
        + run.examples(found.since, found.until, lambda episode: not episode.correct, 1),
    )


def _mixed(step_groups: list[list[EpisodeDigest]]) -> list[list[EpisodeDigest]]:
    return [group for group in step_groups if {one.correct for one in group} == {True, False}]


def _varied(step: StepData) -> float | None:
    """Return the share of groups in which rewards differ, among the groups with both right and wrong episodes.

    The result is ``None`` if there are no such groups, or if all rewards of the step are equal.
    """
    groups = step.groups()
    mixed = _mixed(groups)
    if not mixed or _spread([one.reward for group in groups for one in group]) <= _SAME:
        return None
    return sum(_spread([one.reward for one in group]) > _SAME for group in mixed) / len(mixed)


def _equal_within(run: RunRecord) -> Evidence | None:
    found = spell(each_step(run, "reward/varied", _varied), lambda share: share == 0)
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"In {len(found.values)} steps, all episodes of a group have the same reward, even if some are right and "
        "others are wrong; rewards differ only between groups.",
        figures={"mixed groups with different rewards": 0.0},
        episodes=run.examples(found.since, found.until, lambda episode: episode.correct is False),
    )


FORMATS: Mapping[str, Callable[[EpisodeDigest], bool]] = {
    "one marked answer": lambda one: one.tags == 1,
    "a marked answer": lambda one: one.tags > 0,
    "a tool call": lambda one: bool(one.statuses or one.injected),
    "an end of its own": lambda one: one.end == "answered",
}
"""Formats of an episode that a reward may depend on, by description; each value is a function that returns whether an
episode has the format."""


@dataclass(frozen=True, slots=True)
class _Paid:
    """Dependence of a group's rewards on the answer and on one format of ``FORMATS``.

    Attributes:
        right: Mean reward of right episodes in the format minus the mean reward of wrong episodes in the format;
            ``None`` if there are no right or no wrong episodes in it.
        formed: Mean reward of episodes in the format minus the mean reward of all other episodes; ``None`` if no
            episode or every episode is in the format.
    """

    right: float | None
    formed: float | None


def _difference(group: Sequence[EpisodeDigest], chosen: Callable[[EpisodeDigest], bool]) -> float | None:
    """Return the mean reward of chosen episodes minus that of all others; ``None`` if none or all are chosen."""
    own = [one.reward for one in group if chosen(one)]
    others = [one.reward for one in group if not chosen(one)]
    return fmean(own) - fmean(others) if own and others else None


def _paid(step: StepData) -> tuple[list[float], dict[str, list[_Paid]]]:
    """Return a step's smallest and largest reward, and for each format of ``FORMATS`` a ``_Paid`` per group."""
    groups = step.groups()
    rewards = [one.reward for group in groups for one in group]
    found = {
        name: [
            _Paid(
                _difference(
                    [one for one in group if formed(one) and one.correct is not None], lambda one: bool(one.correct)
                ),
                _difference(group, formed),
            )
            for group in groups
        ]
        for name, formed in FORMATS.items()
    }
    return [min(rewards), max(rewards)] if rewards else [], found


def _pays_alone(groups: Sequence[_Paid], span: float) -> bool:
    """Return whether, in enough groups, a format raises the reward, but a right answer in this format does not.

    Args:
        groups: The mean differences of reward in each group, for one format.
        span: Largest minus smallest reward of all episodes; the differences are compared with it.
    """
    compared = [one for one in groups if one.right is not None]
    blind = [one for one in compared if abs(one.right or 0.0) <= _BLIND * span]
    paid = [one.formed for one in groups if one.formed is not None and (one.right is None or one in blind)]
    enough = len(blind) >= max(_WINDOW, _PART * len(compared))
    return enough and len(paid) >= _WINDOW and fmean(paid) >= _PAYS * span


def _formats_alone(latest: Sequence[StepData], _: StepData) -> frozenset[str]:
    """Return the formats that earn reward even with wrong answers, over the last n steps for some n >= ``LEAST``."""
    paid = [step.once("reward/paid", _paid) for step in latest]
    found: set[str] = set()
    for size in range(LEAST, len(paid) + 1):
        span = _spread([value for bounds, _ in paid[-size:] for value in bounds])
        if span > _SAME:
            groups = {name: [one for _, formats in paid[-size:] for one in formats[name]] for name in FORMATS}
            found |= {name for name, own in groups.items() if _pays_alone(own, span)}
    return frozenset(found)


def _format(run: RunRecord) -> Evidence | None:
    alone = [
        (step.number, step.once("reward/formats alone", partial(_formats_alone, run.steps[max(0, at - _LONGEST) : at])))
        for at, step in enumerate(run.steps, 1)
    ]
    points = {name: [(step, float(name in formats)) for step, formats in alone] for name in FORMATS}
    spells = {name: spell(own, bool, 1) for name, own in points.items()}  # a point is already about several steps
    named = [(name, own) for name, own in spells.items() if own is not None]
    if not named:
        return None
    name, found = max(named, key=lambda one: (one[1].until is None, len(one[1].values)))
    formed = FORMATS[name]
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"Within groups, a right answer earns no more than a wrong answer in the same format ({name}); an episode "
        "in a wrong format earns less.",
        figures={},
        episodes=run.examples(found.since, found.until, lambda one: one.correct is False and formed(one)),
    )


def _exploited(run: RunRecord) -> Evidence | None:
    evaluated = [
        (one.number, one.figures["pass_rate"], one.figures.get("pass_rate_se", 0.0))
        for one in run.evaluations
        if math.isfinite(one.figures.get("pass_rate", math.nan))
    ]
    rewards = rolling(run.series("rollout/reward"), _WINDOW)
    if len(evaluated) < 2 or len(rewards) < 2:
        return None
    best = max(evaluated[:-1], key=lambda one: one[1])
    last = evaluated[-1]
    fall = best[1] - last[1]
    error = (best[2] ** 2 + last[2] ** 2) ** 0.5
    before = [value for step, value in rewards if step <= max(best[0], rewards[0][0])][-1]
    now = [value for step, value in rewards if step <= max(last[0], rewards[0][0])][-1]
    pays = max(abs(value) for _, value in rewards)
    if fall < max(_FALL, 2 * error) or now - before < _FALL * max(pays, _SAME):
        return None
    return Evidence(
        since=next(one[0] for one in evaluated if one[0] > best[0]),
        until=None,
        says=f"The reward rose from {before:.3f} to {now:.3f} while the held-out pass rate fell from {best[1]:.3f} "
        f"(step {best[0]}) to {last[1]:.3f} (step {last[0]}), by {fall / error if error else fall / _FALL:.1f} times "
        f"{'the standard error' if error else f'the threshold of {_FALL:g}'}.",
        figures={"reward": now, "held-out pass rate": last[1], "best held-out pass rate": best[1]},
        episodes=run.examples(last[0] - _WINDOW, last[0], lambda one: one.correct is False and one.reward > before),
    )


register(
    RunCheck(
        name="reward_constant",
        title="The reward is constant",
        looks_at="`reward` and `correct` of the episodes",
        rule="right and wrong episodes have the same reward, in 3 consecutive steps that have both; in a log that does "
        "not record which episodes are right, all episodes have the same reward in 3 consecutive steps",
        severity="error",
        cause="A reward function that fails and returns its default, or that reads a field that does not exist.",
        change=("--set reward=return", "rstar2 validate ENV"),
        otherwise="In a log that does not record which episodes are right: all of them may be right, or all wrong.",
        needs=("episodes",),
        look=constant_reward,
        effects=("few_signals",),
    ),
    RunCheck(
        name="reward_equal_within",
        title="The reward does not differ within groups",
        looks_at="the rewards of groups with right and wrong episodes",
        rule="in 3 consecutive steps, the right and wrong episodes of each group have the same reward, although the "
        "rewards of different groups differ",
        severity="error",
        cause="A reward that depends on the problem alone, or that is computed once for a group.",
        change=("--set reward=return",),
        otherwise="Groups whose episodes are all right or all wrong: they are not evidence and are not counted.",
        needs=("episodes",),
        look=_equal_within,
        effects=("few_signals",),
    ),
    RunCheck(
        name="reward_pays_format",
        title="The reward pays the format alone",
        looks_at="the rewards of right and wrong episodes of the same group, and of episodes with and without a "
        "format: a marked answer, exactly one marked answer, a tool call, or an end before the budget is spent",
        rule="over 3 to 10 steps, the format raises the mean reward by at least 50 % of the range of rewards. In at "
        "least 5 groups, and at least a quarter of the groups with right and wrong answers in the format, a right "
        "answer changes the reward by at most 15 % of the range",
        severity="error",
        cause="A component for the format whose weight is much larger than the weight of the answer.",
        change=("--set reward=return",),
        otherwise="A model that gives no right answer yet: groups without one are not counted.",
        needs=("episodes",),
        look=_format,
        effects=("held_out_falls", "reward_exploited"),
    ),
    RunCheck(
        name="reward_exploited",
        title="The reward rises while held-out problems are solved less often",
        looks_at="`rollout/reward` (mean of 5 steps) and the held-out `pass_rate` with its standard error",
        rule="the last evaluation is at least 5 points and at least 2 standard errors below the best earlier one, "
        "while the reward rose by at least 5 % of its largest value: smaller changes are within the noise of an "
        "evaluation",
        severity="error",
        cause="The policy has found a way to earn reward without solving problems, or memorizes the training problems.",
        change=("rstar2 audit ENV", "--set reward=return"),
        otherwise="Training problems that became easier, by a curriculum: see `sampler/level`.",
        needs=("evaluations", "rollout/reward"),
        look=_exploited,
        effects=("held_out_falls",),
    ),
)
