"""Checks for falling throughput, a process that waits for others, and growing memory."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean, median

from rstar2_env.diagnosis.base import Evidence, RunCheck, register
from rstar2_env.diagnosis.record import FigurePoint, RunRecord
from rstar2_env.diagnosis.spells import rolling, spell, start_level

_HALF, _WINDOW = 0.5, 5
_SLOWER = 0.7
"""Fraction of its earlier speed below which training counts as slower: about the square root of ``_HALF``, the fraction
for the rollout. If both are slower, the cause is not a server, cache or queue that only the rollout uses."""
_WAITS = 0.3
_LEAKS = ((30, 0.1), (15, 0.25))
"""Pairs (steps, growth): memory that grows by the share ``growth`` within ``steps`` steps is reported. Fast growth is
reported after fewer steps."""
_BLOCKS = 5


def _speed(run: RunRecord) -> list[FigurePoint]:
    """Return the generated tokens per second of the rollout of each step."""
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
    """Return two medians of a figure: before step ``since``, and from that step on; 0 for a median without values."""
    points = run.series(name)
    before = [value for step, value in points if step < since]
    after = [value for step, value in points if step >= since]
    return (median(before) if before else 0.0), (median(after) if after else 0.0)


def _falls(run: RunRecord) -> Evidence | None:
    points = _speed(run)
    # The first steps are left out, because they fill caches and compile.
    level = start_level(points[2:])
    if not level or len(points) < 2 + 2 * _WINDOW:
        return None
    found = spell(rolling(points, _WINDOW), lambda speed: speed < _HALF * level)
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
    found = spell(run.series("seconds/share_waiting"), lambda share: share > _WAITS, _WINDOW)
    if found is None:
        return None
    return Evidence(
        since=found.since,
        until=found.until,
        says=f"On average, processes wait {100 * found.mean:.0f} % of the time of a rollout for the slowest process.",
        figures={"seconds/share_waiting": found.mean},
    )


def _grows(run: RunRecord) -> Evidence | None:
    points = run.series("memory/process_gib")[5:]
    for steps, growth in _LEAKS:
        recent = points[-steps:]
        size = steps // _BLOCKS
        blocks = [fmean(value for _, value in recent[at : at + size]) for at in range(0, len(recent), size)]
        rises = all(later > earlier for earlier, later in pairwise(blocks))
        if len(recent) < steps or not rises or blocks[-1] - blocks[0] < growth * blocks[0]:
            continue
        each = (blocks[-1] - blocks[0]) / (steps - size)
        return Evidence(
            since=recent[0][0],
            until=None,
            says=f"The memory of the process grew in each fifth of the last {steps} steps, from {recent[0][1]:.2f} to "
            f"{recent[-1][1]:.2f} GiB: {1024 * each:.1f} MiB a step.",
            figures={"memory/process_gib": recent[-1][1], "GiB a step": each},
        )
    return None


register(
    RunCheck(
        name="throughput_falls",
        title="Throughput falls",
        looks_at="`speed/generated_tokens_per_second`, or else the tokens of the rollouts divided by "
        "`seconds/rollout`; to find the reason, also at the episodes' times in the environment and in queues, and "
        "the tokens trained on per second",
        rule="the mean of 5 steps below half of the median of steps 3 to 7, in 3 consecutive means: ordinary "
        "variation is smaller",
        severity="warning",
        cause="Longer prompts that fill the cache, one slow server, or a queue in front of the sandbox: the "
        "finding lists the metrics that rose.",
        change=("--set rollout.adaptive_in_flight=true", "--set rollout.max_in_flight=FEWER", "rstar2 doctor"),
        otherwise="Another program on the machine, or episodes with a different share of tool time.",
        needs=("seconds/rollout|speed/generated_tokens_per_second",),
        look=_falls,
    ),
    RunCheck(
        name="process_waits",
        title="Processes wait for one another",
        looks_at="`seconds/share_waiting`: the mean wait for the slowest process, as a share of the rollout's time",
        rule="more than 30 % in 5 consecutive steps: uneven episodes alone cost 5 to 20 % on average",
        severity="warning",
        cause="One process with longer episodes or a slower machine.",
        change=("--set rollout.one_queue=true", "--set rollout.tail=carry"),
        otherwise="Few episodes for each process: with one or two, the wait depends on their lengths.",
        needs=("seconds/share_waiting",),
        look=_waits,
        applies=lambda run: run.processes != 1,
    ),
    RunCheck(
        name="memory_grows",
        title="Memory grows from step to step",
        looks_at="`memory/process_gib`, without the first 5 steps",
        rule="the mean memory rises from each fifth of the last 30 steps to the next, by at least 10 % in total, or "
        "from each fifth of the last 15 steps to the next, by at least 25 % in total: allocators and caches rise "
        "and fall, a leak does not",
        severity="warning",
        cause="A custom part that keeps references to episodes, or an environment that is not closed.",
        change=("--set rollout.max_in_flight=FEWER", "--resume"),
        otherwise="Episodes that become longer: see `rollout/tokens`.",
        needs=("memory/process_gib",),
        look=_grows,
    ),
)
