"""Checks for a reward that is constant, does not depend on the answer, depends on the format only, or is exploited."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain
from statistics import fmean

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import EpisodeDigest, FigurePoint, RunRecord, StepData
from rstar2_env.diagnosis.spells import each_step, rolling, spell

_SAME = 1e-9
_WINDOW = 5
_BLIND = 0.05
_PAYS = 0.5
_FALL = 0.05


def _spread(values: list[float]) -> float:
    return max(values) - min(values) if values else 0.0


def _spread_of(step: StepData) -> float | None:
    """Return the largest minus the smallest reward of a step; ``None`` unless it has right and wrong episodes."""
    counted = [one for one in step.episodes if one.available and one.correct is not None]
    return _spread([one.reward for one in counted]) if len({one.correct for one in counted}) == 2 else None


def _first_reward(step: StepData) -> float | None:
    return next((one.reward for one in step.episodes if one.available), None)


def _constant(run: RunRecord) -> Evidence | None:
    points = each_step(run, "reward/spread", _spread_of)
    rewards = dict(each_step(run, "reward/first", _first_reward))
    found = spell(points, lambda spread: spread <= _SAME)
    if found is None:
        return None
    shown = rewards[found.since]
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"Every episode of {len(found.values)} steps has the reward {shown:g}, right or wrong.",
        figures={"reward": shown},
        episodes=run.examples(found.since, found.until, lambda episode: bool(episode.correct), 2)
        + run.examples(found.since, found.until, lambda episode: episode.correct is False, 1),
    )


def _mixed(step_groups: list[list[EpisodeDigest]]) -> list[list[EpisodeDigest]]:
    return [group for group in step_groups if len({one.correct for one in group}) == 2]


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


def _gap(one: list[EpisodeDigest], other: list[EpisodeDigest]) -> float:
    return fmean(e.reward for e in one) - fmean(e.reward for e in other)


def _within(groups: list[list[EpisodeDigest]], chosen: Callable[[EpisodeDigest], bool]) -> list[float]:
    """Return the mean reward of a group's chosen episodes minus that of its others, for each group that has both."""
    found = []
    for group in groups:
        chosen_ones = [one for one in group if chosen(one)]
        others = [one for one in group if not chosen(one)]
        if chosen_ones and others:
            found.append(_gap(chosen_ones, others))
    return found


def _paid(step: StepData) -> tuple[list[float], list[float], list[float]]:
    """Return the step's [smallest, largest] reward, and two lists with one difference of mean rewards per group.

    The first list compares right with wrong episodes, among those with exactly one marked answer (the right format);
    the second compares episodes with and without that format. A list leaves out groups that lack one of the two kinds.
    """
    groups = step.groups()
    rewards = [one.reward for group in groups for one in group]
    # Compare only episodes with the same format, so that the format cannot explain the difference.
    formed = [[one for one in group if one.tags == 1] for group in groups]
    bounds = [min(rewards), max(rewards)] if rewards else []
    return bounds, _within(formed, lambda one: bool(one.correct)), _within(groups, lambda one: one.tags == 1)


def _format(run: RunRecord) -> Evidence | None:
    points: list[FigurePoint] = []
    paid = [step.once("reward/paid", _paid) for step in run.steps]
    for at in range(_WINDOW, len(run.steps) + 1):
        bounds, answers, formats = (
            list(chain.from_iterable(each)) for each in zip(*paid[at - _WINDOW : at], strict=True)
        )
        span = _spread(bounds)
        if span > _SAME and len(answers) >= _WINDOW and len(formats) >= _WINDOW:
            blind = abs(fmean(answers)) <= _BLIND * span and fmean(formats) >= _PAYS * span
            points.append((run.steps[at - 1].number, float(blind)))
    found = spell(points, bool, 1)  # a point is already the mean of several steps
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says="Within groups, a right answer earns no more than a wrong answer in the same format (one marked answer); "
        "an episode in a wrong format earns less.",
        figures={},
        episodes=run.examples(
            found.since, found.until, lambda one: one.correct is False and one.tags == 1 and one.reward > 0
        ),
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
        rule="right and wrong episodes have the same reward, in 3 consecutive steps that have both",
        severity="error",
        cause="A reward function that fails and returns its default, or that reads a field that does not exist.",
        change=("--set reward=return", "rstar2 validate ENV"),
        otherwise="Steps in which all episodes are right or all are wrong are not counted.",
        needs=("episodes",),
        look=_constant,
    ),
    RunCheck(
        name="reward_equal_within",
        title="The reward does not differ within groups",
        looks_at="the rewards of groups with right and wrong episodes",
        rule="no such group has two different rewards in 3 consecutive steps, although the groups' rewards differ",
        severity="error",
        cause="A reward that depends on the problem alone, or that is computed once for a group.",
        change=("--set reward=return",),
        otherwise="Groups whose episodes are all right or all wrong: they are not evidence and are not counted.",
        needs=("episodes",),
        look=_equal_within,
    ),
    RunCheck(
        name="reward_pays_format",
        title="The reward pays the format alone",
        looks_at="the rewards of right and wrong episodes of the same group, and of episodes with and without the "
        "right format (exactly one marked answer)",
        rule="over 5 steps, a right answer raises the reward by at most 5 % of the range of rewards (compared with a "
        "wrong answer in the same format), and a right format raises it by at least 50 % of the range",
        severity="error",
        cause="A component for the format whose weight is much larger than the weight of the answer.",
        change=("--set reward=return",),
        otherwise="A model that gives no right answer yet: groups without one are not counted.",
        needs=("episodes",),
        look=_format,
    ),
    RunCheck(
        name="reward_exploited",
        title="The reward rises while held-out problems are solved less often",
        looks_at="`rollout/reward` (mean of 5 steps) and the held-out `pass_rate` with its standard error",
        rule="a fall of the last evaluation from the best earlier one by 5 points and 2 standard errors, while the "
        "reward rose by 5 % of its largest value: smaller changes are within the noise of an evaluation",
        severity="error",
        cause="The policy has found a way to earn reward without solving problems, or memorizes the training problems.",
        change=("rstar2 audit MODULE:GRADER", "--set reward=return", "rstar2 problems decontaminate"),
        otherwise="Training problems that became easier, by a curriculum: see `sampler/level`.",
        needs=("evaluations", "rollout/reward"),
        look=_exploited,
    ),
)
