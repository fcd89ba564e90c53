"""Checks for a sampler that keeps drawing the same few problems, and for a curriculum that does not advance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import RunRecord, StepData

_LEAST, _MOST = 3, 64
"""Repeated problems are sought in windows of the latest steps. A window has at least ``_LEAST`` steps; with more than
``_WINDOW`` steps, it has at most ``_MOST`` groups."""
_WINDOW = 10
_PART, _TIMES, _BY_CHANCE = 4, 3, 1e-6
"""Problems repeat too often if two conditions hold. First, there are at least ``_TIMES`` times as many groups as
distinct problems. Second, the number of pairs of groups with the same problem is too large for chance: even if
problems were drawn uniformly from only one ``_PART``-th of the data, so large a number would have a probability of at
most ``_BY_CHANCE``."""
_STILL, _READY = 20, 0.85


def _drawn(step: StepData) -> list[str]:
    return [group[0].problem or group[0].question for group in step.groups()]


def _stuck(run: RunRecord) -> Evidence | None:
    draws: list[tuple[int, str]] = []
    for step in run.steps:
        draws += [(step.number, problem) for problem in step.once("drawn", _drawn)]
    known = int(run.steps[-1].figures.get("sampler/problems", 0)) if run.steps else 0
    known = known or len({problem for _, problem in draws})
    longest = min(len(run.steps), _MOST)
    last = [(step, problem) for step, problem in draws if problem and step >= run.steps[-longest].number]
    for window in range(_LEAST, longest + 1):
        begin = run.steps[-window].number
        recent = [problem for step, problem in last if step >= begin]
        if window > _WINDOW and len(recent) > _MOST:
            return None
        if _confined(recent, known):
            return _few_problems(run, begin, recent, known)
    return None


def _confined(drawn: Sequence[str], known: int) -> bool:
    """Return whether problems repeat far more often than if they were drawn uniformly from a quarter of the data.

    Args:
        drawn: The problem of each group, repetitions included.
        known: Number of problems in the data.
    """
    counts = Counter(drawn)
    if not drawn or len(drawn) < _TIMES * len(counts) or known < 2 * len(counts):
        return False
    pairs = sum(count * (count - 1) // 2 for count in counts.values())
    part = max(known / _PART, min(known, 2 * len(counts)))
    expected = len(drawn) * (len(drawn) - 1) / 2 / part
    # An upper bound of the probability that a Poisson variable with this mean is at least ``pairs`` (Chernoff).
    return pairs > expected and pairs * log(pairs / expected) - pairs + expected > -log(_BY_CHANCE)


def _few_problems(run: RunRecord, begin: int, recent: list[str], known: int) -> Evidence:
    distinct = len(set(recent))
    most = Counter(recent).most_common(1)[0]
    return Evidence(
        since=begin,
        until=None,
        says=f"The {len(recent)} groups since step {begin} contain only {distinct} different "
        f"problems, although the sampler has at least {known}; {most[0]!r} was drawn {most[1]} times.",
        figures={"groups": len(recent), "distinct problems": distinct, "problems": known},
        episodes=run.examples(begin, None, lambda one: one.problem == most[0]),
    )


def _still(run: RunRecord) -> Evidence | None:
    for name in ("sampler/level", "sampler/stage"):
        points = run.series(name)
        rates = dict(run.series("rollout/pass_rate"))
        recent = points[-_STILL:]
        if len(recent) < _STILL or len({value for _, value in recent}) > 1:
            continue
        passed = [rates[step] for step, _ in recent if step in rates]
        if passed and sum(passed) / len(passed) > _READY:
            return Evidence(
                since=recent[0][0],
                until=None,
                says=f"`{name}` has been {recent[0][1]:g} for {_STILL} steps, although "
                f"{100 * sum(passed) / len(passed):.0f} % of the episodes of these steps are right.",
                figures={name: recent[0][1], "pass rate": sum(passed) / len(passed)},
            )
    return None


register(
    RunCheck(
        name="sampler_stuck",
        title="The sampler is stuck on a part of the data",
        looks_at="the problems of the groups of the last steps, and `sampler/problems`",
        rule="in the latest 3 to 10 steps, or in more steps with at most 64 groups in total, each drawn problem occurs "
        "at least 3 times on average, and so many repetitions would have a probability below 1e-6 if problems were "
        "drawn uniformly from a quarter of the data: a sampler that prefers some problems still uses most of the data",
        severity="warning",
        cause="A sampler whose own estimates confine it to few problems, or a filter that leaves few problems.",
        change=("--set sampler=uniform",),
        otherwise="A curriculum at a level with few problems: see `sampler/level`.",
        needs=("episodes",),
        look=_stuck,
        effects=("all_right", "all_wrong", "few_signals"),
    ),
    RunCheck(
        name="curriculum_still",
        title="The curriculum does not move",
        looks_at="`sampler/level` or `sampler/stage`, and `rollout/pass_rate`",
        rule="the level or stage is the same in the last 20 steps, although more than 85 % of the episodes of these "
        "steps are right: at such a pass rate, few groups have a signal to learn from",
        severity="warning",
        cause="A threshold of the curriculum that the pass rate does not reach, or results that do not "
        "reach the sampler.",
        change=("--set sampler=curriculum:above=0.5", "--set sampler=difficulty_pool"),
        otherwise="The curriculum is at its last level: then all problems are learned.",
        needs=("sampler/level|sampler/stage", "rollout/pass_rate"),
        look=_still,
        effects=("all_right", "few_signals"),
    ),
)
