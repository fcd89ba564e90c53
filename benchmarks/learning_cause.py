"""Why a selector leaves failing calls: the training data of a run by quarters of its steps, and the section about it.

GRPO-RoC teaches against failing calls in two ways: right episodes without one are kept in place of those with one, and
failing calls of wrong episodes get the negative advantage of those. So what is left to explain its result is counted
from a run's records: right episodes with a failing call that are kept all the same, since their group has not enough
others for its quota (``forced``); groups that train nothing; and the advantage of turns whose call failed or ran.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, stdev
from textwrap import wrap
from typing import Any

QUARTERS = 4
COUNTS = (
    *("groups", "rejected", "right", "right_failing", "kept_right", "kept_right_failing", "forced"),
    *("kept_wrong", "kept_wrong_failing", "failed", "failed_advantage", "ran", "ran_advantage"),
)
"""Counts of groups, of episodes (``failing``: with a failed call), and of the turns that train."""
BASE, PAPER, CLEAN = "grpo", "grpo_roc", "grpo_roc_clean"
WIDTH = 120
WHY = """`{paper}` works against failing calls in two ways: of the right answers it prefers those without one, and a
failing call in a wrong answer has the negative advantage of its episode. The tables count the training data of each
quarter of the first {steps} steps, over all seeds; an advantage is the mean over calls. A right answer is kept
"because of the quota" if its group has fewer right answers without a failing call than its quota."""
TOLD = """{where}: in the first quarter {bad:.0%} of the right answers that `{paper}` keeps have a failing call,
{forced:.0%} of these because of the quota (sampling by weight instead of rank explains the rest), so failing calls are
reinforced too. In the last quarter {bad_last:.1%} have one, but {idle:.0%} of the groups do not train, and only
{calls_last:.1f} failing calls per step train instead of {calls:.1f}, because rare calls are rarely played. So the lower
the share, the slower it falls; at the end it is still falling: {falling}. `{clean}` adds -1 to the advantage of every
trained failing call, also in right answers: the advantage is {clean_first:+.2f} in the first quarter instead of
{first:+.2f}, and {clean_last:+.2f} in the last instead of {last:+.2f}."""
"""Text about the counts, in general and for a share of injected faults."""
EPSILON = 1e-4
"""Added to a deviation by ``group_norm``."""


def causes(read: Any, steps: int, penalty: float = 0.0) -> list[dict[str, float]]:
    """Count what each quarter of the first steps trained on.

    Args:
        read: The run, as ``read_run`` returns it.
        steps: How many steps, from the first.
        penalty: What is added to the advantage of a turn whose call failed.

    Returns:
        The counts of each quarter, by the names in ``COUNTS``; ``*_advantage`` are sums.
    """
    found: list[dict[str, float]] = [dict.fromkeys(COUNTS, 0) for _ in range(QUARTERS)]
    for step in range(1, steps + 1):
        counts = found[(step - 1) * QUARTERS // steps]
        for group in read.groups(step):
            for name, number in of_group(group, penalty).items():
                counts[name] += number
    return found


def of_group(group: Sequence[Any], penalty: float) -> dict[str, float]:
    """The counts of one group of entries; see ``causes``."""
    counts: dict[str, float] = {**dict.fromkeys(COUNTS, 0), "groups": 1}
    kept = [entry for entry in group if entry.kept]
    counts["rejected"] = int(not kept)
    right = [entry.episode for entry in group if entry.episode.available and entry.episode.correct]
    counts["right"], counts["right_failing"] = len(right), sum(map(fails, right))
    rewards = [entry.episode.reward for entry in kept]
    middle, spread = (mean(rewards), stdev(rewards)) if len(rewards) > 1 else (0.0, math.inf)
    for entry in kept:
        side = "kept_right" if entry.episode.correct else "kept_wrong"
        counts[side] += 1
        counts[f"{side}_failing"] += fails(entry.episode)
        advantage = (entry.episode.reward - middle) / (spread + EPSILON)
        for status in (status for turn in entry.episode.steps for status in turn.statuses if status.counts):
            called = "failed" if status.is_error else "ran"
            counts[called] += 1
            counts[f"{called}_advantage"] += advantage + (penalty if status.is_error else 0.0)
    if kept:
        counts["forced"] = max(0, counts["kept_right"] - (counts["right"] - counts["right_failing"]))
    return counts


def fails(episode: Any) -> bool:
    """Whether a call of an episode failed that counts."""
    return any(status.is_error for status in episode.statuses if status.counts)


def section(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why the paper's selector leaves more failing calls than ``grpo_roc_clean``: words and a table.

    Args:
        lines: Of the comparison; without counts of ``grpo_roc`` there is nothing to tell.
    """
    held = [line for line in lines if line["arm"] == PAPER and line.get("causes")]
    if not held:
        return []
    text = ["### Why the paper's selector alone leaves more", ""]
    text += [*wrap(WHY.format(paper=PAPER, clean=CLEAN, steps=held[0]["cause_steps"]), WIDTH), ""]
    for faults in sorted({line["faults"] for line in held}):
        own = [line for line in lines if line["faults"] == faults]
        text += [*wrap(_told(own, faults), WIDTH, break_on_hyphens=False), "", *table(own, (BASE, PAPER, CLEAN)), ""]
    return text


def _told(lines: Sequence[Mapping[str, Any]], faults: float) -> str:
    paper, clean = ([line for line in lines if line["arm"] == arm and line.get("causes")] for arm in (PAPER, CLEAN))
    (first, last), (clean_first, clean_last) = (
        [total([line["causes"][number] for line in held]) for number in (0, -1)] for held in (paper, clean)
    )
    calls = len(paper) * paper[0]["cause_steps"] / QUARTERS
    steps = [point["step"] for point in paper[0]["curve"]]
    failing = [
        mean(point["failing"] for line in paper for point in line["curve"] if point["step"] == at) for at in steps
    ]
    return TOLD.format(
        where=f"With {faults:.0%} injected faults" if faults else "Without injected faults",
        paper=PAPER,
        clean=CLEAN,
        bad=share(first, "kept_right_failing", "kept_right"),
        forced=share(first, "forced", "kept_right_failing"),
        bad_last=share(last, "kept_right_failing", "kept_right"),
        calls=first["failed"] / calls,
        calls_last=last["failed"] / calls,
        idle=share(last, "rejected", "groups"),
        falling=", ".join(f"{value:.3f} after step {at}" for at, value in zip(steps, failing, strict=True)),
        first=share(first, "failed_advantage", "failed"),
        last=share(last, "failed_advantage", "failed"),
        clean_first=share(clean_first, "failed_advantage", "failed"),
        clean_last=share(clean_last, "failed_advantage", "failed"),
    )


def table(lines: Iterable[Mapping[str, Any]], arms: Sequence[str]) -> list[str]:
    """Return the table of the training data of arms, over all seeds; arms without counts are omitted.

    Args:
        lines: Of the comparison, with one share of injected faults.
        arms: Those to tell of.
    """
    text = [
        "| arm | steps | groups without training | right episodes with a failing call: played | kept | kept because of "
        "the quota | failing calls trained | their advantage | advantage of working calls |",
        "|" + "---|" * 9,
    ]
    for arm in arms:
        held = [line for line in lines if line["arm"] == arm and line.get("causes")]
        for quarter in range(QUARTERS if held else 0):
            own = total([line["causes"][quarter] for line in held])
            last = held[0]["cause_steps"]
            first = next(step for step in range(1, last + 1) if (step - 1) * QUARTERS // last == quarter)
            end = max(step for step in range(1, last + 1) if (step - 1) * QUARTERS // last == quarter)
            cells = [
                f"{share(own, 'rejected', 'groups'):.2f}",
                f"{share(own, 'right_failing', 'right'):.2f}",
                f"{share(own, 'kept_right_failing', 'kept_right'):.3f}",
                f"{share(own, 'forced', 'kept_right'):.3f}" if arm != BASE else "",
                f"{own['failed'] / len(held) / (end - first + 1):.1f} a step",
                f"{share(own, 'failed_advantage', 'failed'):+.2f}",
                f"{share(own, 'ran_advantage', 'ran'):+.2f}",
            ]
            text.append("| " + " | ".join([f"`{arm}`" if not quarter else "", f"{first}–{end}", *cells]) + " |")
    return text


def total(counts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The sums of counts."""
    return {name: sum(one[name] for one in counts) for name in COUNTS}


def share(counts: Mapping[str, float], part: str, whole: str) -> float:
    """Return one count divided by another; 0 if there is nothing."""
    return counts[part] / counts[whole] if counts[whole] else 0.0
