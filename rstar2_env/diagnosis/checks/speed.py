"""Checks for falling throughput, a process that waits for others, and growing memory."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import FigurePoint, RunRecord
from rstar2_env.diagnosis.spells import rolling, spell, start_level

_FALLEN, _WINDOW = 0.55, 5
"""A mean speed over ``_WINDOW`` steps is reported if it is below the fraction ``_FALLEN`` of the speed at the start.
The fraction is slightly above one half, so that a speed that has halved is reported despite the noise of the mean."""
_SLOWER = 0.75
"""Training counts as slower below this fraction of its earlier speed. The fraction is about the square root of
``_FALLEN``, which applies to the rollout. If training is slower too, the cause is not a server, cache or queue that
only the rollout uses."""
_WAITS, _WAITS_IN_TURN, _SAME = 0.28, 0.5, 0.8
"""The wait for the slowest process is reported above these shares of the rollout's time: ``_WAITS`` if one process
causes at least the share ``_SAME`` of the wait, else ``_WAITS_IN_TURN``."""
_LEAST_WAIT_S = 0.25
"""Shortest mean wait that is reported, in seconds per step: in rollouts of a tenth of a second, the start and
other programs cause waits of a twentieth of a second."""
_SHORTEST, _LONGEST = (12, 0.35), (30, 0.1)
"""The shortest and the longest period over which memory is examined, each as a pair: its number of steps, and the
smallest relative growth over it that is reported. For periods in between, the smallest growth falls linearly."""
_BLOCKS, _PART = 4, 0.1
"""The examined steps are divided into ``_BLOCKS`` parts. From each part's mean to the next, at least the share
``_PART`` of the whole growth must occur: a cache that is filled once grows in one or two parts only."""


def _speed(run: RunRecord) -> list[FigurePoint]:
    """Return, for each step, the number of tokens that the rollout generated per second."""
    generated = run.series("speed/generated_tokens_per_second")
    if generated:
        return generated
    tokens, episodes = dict(run.series("rollout/tokens")), dict(run.series("rollout/episodes"))
    return [
        (step, tokens[step] * episodes[step] / seconds)
        for step, seconds in run.series("seconds/rollout")
        if seconds > 0 and step in tokens and step in episodes
    ]


def _at(run: RunRecord, name: str, since: int) -> tuple[float, float]:
    """Return two medians of a metric: before step ``since``, and from that step on; 0 for a median without values."""
    points = run.series(name)
    before = [value for step, value in points if step < since]
    after = [value for step, value in points if step >= since]
    return (median(before) if before else 0.0), (median(after) if after else 0.0)


def _falls(run: RunRecord) -> Evidence | None:
    points = _speed(run)
    # The first steps may fill caches and compile, so the steps 3 to 7 count too.
    level = max(start_level(points) or 0.0, start_level(points[2:], _WINDOW) or 0.0)
    if not level:
        return None
    # A single step is enough, because a value is already the mean of several steps.
    found = spell(rolling(points, _WINDOW), lambda speed: speed < _FALLEN * level, 1)
    if found is None:
        return None
    figures = {"tokens per second": found.last, "before": level}
    reasons = []
    for name, words in (
        ("seconds/tool", "episodes wait longer for the environment: the queue of the sandbox"),
        ("seconds/engine_wait", "episodes wait longer for the engine: a slow server, or fewer servers"),
        ("engine/preemptions", "the engine interrupts sequences because its cache is full"),
    ):
        before, after = _at(run, name, found.since)
        if after > 2 * before and after > 0.01:
            figures |= {name: after, f"{name} before": before}
            reasons.append(words)
    name = "speed/train_tokens_per_second"
    before, after = _at(run, name, found.since)
    if 0 < after < _SLOWER * before:
        figures |= {name: after, f"{name} before": before}
        reasons.append(
            "training became slower too: perhaps another program on the machine, or episodes of other lengths"
        )
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"Rollouts generate {found.last:.0f} tokens a second, {100 * found.last / level:.0f} % of the level "
        f"before ({level:.0f})"
        + (f"; {'; '.join(reasons)}." if reasons else "; the metrics of the run do not show the reason."),
        figures=figures,
    )


def _waits(run: RunRecord) -> Evidence | None:
    shares = run.series("seconds/share_waiting")
    found = spell(rolling(shares, _WINDOW), lambda share: share > _WAITS, 2)
    if found is None:
        return None
    last = math.inf if found.until is None else found.until
    # The first mean of the spell is that of the steps up to ``since``.
    within = [(step, share) for step, share in shares if found.since - _WINDOW < step <= last]
    seconds = dict(run.series("seconds/rollout"))
    # The metric of seconds is the mean over processes: the slowest one takes the mean divided by (1 - share).
    waits = [seconds[step] * share / (1 - share) for step, share in within if step in seconds and share < 1]
    if waits and fmean(waits) < _LEAST_WAIT_S:
        return None
    which, slowest = "", dict(run.series("rollout/slowest_process"))
    waited: defaultdict[int, float] = defaultdict(float)
    for step, share in within:
        if step in slowest:
            waited[int(slowest[step])] += share
    if waited:
        rank = max(waited, key=waited.__getitem__)
        if waited[rank] >= _SAME * sum(waited.values()):
            which = f", which is mostly process {rank}"
        elif found.mean > _WAITS_IN_TURN:
            which = ", which is not always the same process"
        else:
            return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"On average, processes wait {100 * found.mean:.0f} % of the time of a rollout for the slowest process"
        f"{which}.",
        figures={"seconds/share_waiting": found.mean},
    )


def _grows(run: RunRecord) -> Evidence | None:
    points = run.series("memory/process_gib")[1:]  # the first step allocates what all steps use
    for steps in range(_SHORTEST[0], min(_LONGEST[0], len(points)) + 1):
        recent = points[-steps:]
        growth = _growth([value for _, value in recent])
        if growth < _SHORTEST[1] + (_LONGEST[1] - _SHORTEST[1]) * (steps - _SHORTEST[0]) / (_LONGEST[0] - _SHORTEST[0]):
            continue
        first, last = recent[0][1], recent[-1][1]
        each = (last - first) / (steps - 1)
        return Evidence(
            since=recent[0][0],
            until=None,
            says=f"The memory of the process grew in each quarter of the last {steps} steps, from {first:.2f} to "
            f"{last:.2f} GiB: {1024 * each:.1f} MiB a step.",
            figures={"memory/process_gib": last, "GiB a step": each},
        )
    return None


def _growth(values: Sequence[float]) -> float:
    """Return the relative growth of values from the mean of their first quarter to the mean of the last.

    The result is 0 unless every quarter contributes to the growth.
    """
    edges = [len(values) * at // _BLOCKS for at in range(_BLOCKS + 1)]
    parts = [fmean(values[start:stop]) for start, stop in pairwise(edges)]
    whole = parts[-1] - parts[0]
    if parts[0] <= 0 or any(later - earlier < _PART * whole for earlier, later in pairwise(parts)):
        return 0.0
    return whole / parts[0]


register(
    RunCheck(
        name="throughput_falls",
        title="Throughput falls",
        looks_at="`speed/generated_tokens_per_second`, or else the tokens of the rollouts divided by "
        "`seconds/rollout`; to find the reason, also at the episodes' times in the environment and in queues, and "
        "the tokens trained on per second",
        rule="the mean speed of 5 steps is below 55 % of the speed at the start, which is the median of steps 1 to 3 "
        "or the median of steps 3 to 7, whichever is higher: ordinary variation lowers the speed by less than 45 %",
        severity="warning",
        cause="Longer prompts that fill the cache, one slow server, or a queue in front of the sandbox: the "
        "finding lists the metrics that rose.",
        change=("--set rollout.adaptive_in_flight=true", "--set rollout.max_in_flight=FEWER", "rstar2 doctor"),
        otherwise="Another program on the machine, or episodes with a different share of tool time.",
        needs=("seconds/rollout|speed/generated_tokens_per_second",),
        look=_falls,
        effects=("cut_by_time",),
    ),
    RunCheck(
        name="process_waits",
        title="Processes wait for one another",
        looks_at="`seconds/share_waiting`: the mean wait for the slowest process, as a share of the rollout's time; "
        "and at `rollout/slowest_process`",
        rule="in two successive means over 5 steps, processes wait for more than 28 % of the rollout's time. If no "
        "process causes 80 % of the wait, the mean wait must be above 50 %: uneven lengths of episodes alone make "
        "processes wait for one another in turn, for 5 to 20 % of the rollout's time on average. A mean wait of less "
        "than a quarter of a second per step is not reported, since the start of a rollout can cause it",
        severity="warning",
        cause="One process with longer episodes or a slower machine.",
        change=("--set rollout.one_queue=true", "--set rollout.tail=carry"),
        otherwise="Few episodes for each process: with one or two, the wait depends on their lengths.",
        needs=("seconds/share_waiting",),
        look=_waits,
        applies=lambda run: run.processes != 1,
        effects=("throughput_falls",),
    ),
    RunCheck(
        name="memory_grows",
        title="Memory grows from step to step",
        looks_at="`memory/process_gib`, without the first step",
        rule="the last 12 to 30 steps are divided into quarters; the mean memory rises from each quarter to the next "
        "by at least a tenth of the total rise, and the total rise is at least 35 % over 12 steps or 10 % over 30 "
        "steps (for numbers in between, the bound is interpolated): allocators and caches grow once, or grow and "
        "shrink; a leak keeps growing",
        severity="warning",
        cause="A custom part that keeps references to episodes, or an environment that is not closed.",
        change=("--set rollout.max_in_flight=FEWER", "--resume"),
        otherwise="Episodes that become longer: see `rollout/tokens`.",
        needs=("memory/process_gib",),
        look=_grows,
        effects=("throughput_falls",),
    ),
)
