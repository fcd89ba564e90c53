"""Count the training data of a run by quarters of its steps, to explain why a selector leaves failing calls.

GRPO-RoC acts against failing calls in two ways: it prefers correct episodes without a failing call, and a failing call
in a wrong episode gets the negative advantage of this episode. To explain its result, three things are counted from a
run's records: correct episodes with a failing call that are kept because their group has too few other correct episodes
for its quota (``forced``); groups without training; and the advantages of turns whose call failed or ran. Also contains
the section of the page about these counts.
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
"""Names of the counts: groups, episodes (``failing``: with a failed call), and turns that are trained on."""
BASE, PAPER, CLEAN = "grpo", "grpo_roc", "grpo_roc_clean"
WIDTH = 120
WHY = """`{paper}` acts against failing calls in two ways. First, this recipe prefers correct episodes without a
failing call. Second, a failing call in a wrong episode gets the negative advantage of this episode. The tables count
the training data of each quarter of the first {steps} steps, over all seeds. Each advantage in these tables is a mean
over calls. A correct episode with a failing call is kept *because of the quota* if its group has fewer correct episodes
without a failing call than the quota requires."""
TOLD = """{where}: in the first quarter of the steps, {bad:.0%} of the correct episodes that `{paper}` keeps have a
failing call; {forced:.0%} of these episodes are kept because of the quota, the others because `{paper}` samples by
weight instead of rank. Failing calls are therefore reinforced too. In the last quarter, only {bad_last:.1%} of the
correct episodes that `{paper}` keeps have a failing call. However, {idle:.0%} of the last quarter's groups are not
trained on. A step of the last quarter trains on {calls_last:.1f} failing calls, instead of {calls:.1f} in the first
quarter, because the policy makes fewer failing calls. The smaller the share of failing calls is, the slower it falls.
At the end, the share of failing calls is still falling: {falling}."""
CLEANER = """`{clean}` adds -1 to the advantage of every failing call that is trained on, also in correct episodes. In
the first quarter, the advantage of a failing call is {clean_first:+.2f} with `{clean}` and {first:+.2f} with `{paper}`;
in the last quarter, it is {clean_last:+.2f} and {last:+.2f}."""
"""Text about the counts, in general and for a share of injected faults."""
EPSILON = 1e-4
"""Added to a deviation by ``group_norm``."""


def causes(read: Any, steps: int, penalty: float = 0.0) -> list[dict[str, float]]:
    """Count the training data of each quarter of the first steps.

    Args:
        read: The run, as ``read_run`` returns it.
        steps: Number of steps, from the first.
        penalty: Number that is added to the advantage of a turn whose call failed.

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
    """Return the counts of one group of entries; see ``causes``."""
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
    """Return whether any counted call of an episode failed."""
    return any(status.is_error for status in episode.statuses if status.counts)


def section(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the section that explains why the paper's selector leaves more failing calls than ``grpo_roc_clean``.

    Args:
        lines: Lines of the comparison; without counts of ``grpo_roc``, the section is empty.
    """
    held = [line for line in lines if line["arm"] == PAPER and line.get("causes")]
    if not held:
        return []
    text = ["### Why the paper's selector alone leaves more failing calls", ""]
    text += [*wrap(WHY.format(paper=PAPER, clean=CLEAN, steps=held[0]["cause_steps"]), WIDTH), ""]
    for faults in sorted({line["faults"] for line in held}):
        own = [line for line in lines if line["faults"] == faults]
        for paragraph in _told(own, faults):
            text += [*wrap(paragraph, WIDTH, break_on_hyphens=False), ""]
        text += [*table(own, (BASE, PAPER, CLEAN)), ""]
    return text


def _told(lines: Sequence[Mapping[str, Any]], faults: float) -> list[str]:
    """Return the paragraphs about one share of injected faults."""
    paper, clean = ([line for line in lines if line["arm"] == arm and line.get("causes")] for arm in (PAPER, CLEAN))
    (first, last), (clean_first, clean_last) = (
        [total([line["causes"][number] for line in held]) for number in (0, -1)] for held in (paper, clean)
    )
    calls = len(paper) * paper[0]["cause_steps"] / QUARTERS
    steps = [point["step"] for point in paper[0]["curve"]]
    failing = [
        mean(point["failing"] for line in paper for point in line["curve"] if point["step"] == at) for at in steps
    ]
    values = {
        "where": f"With {faults:.0%} injected faults" if faults else "Without injected faults",
        "paper": PAPER,
        "clean": CLEAN,
        "bad": share(first, "kept_right_failing", "kept_right"),
        "forced": share(first, "forced", "kept_right_failing"),
        "bad_last": share(last, "kept_right_failing", "kept_right"),
        "calls": first["failed"] / calls,
        "calls_last": last["failed"] / calls,
        "idle": share(last, "rejected", "groups"),
        "falling": ", ".join(f"{value:.3f} after step {at}" for at, value in zip(steps, failing, strict=True)),
        "first": share(first, "failed_advantage", "failed"),
        "last": share(last, "failed_advantage", "failed"),
        "clean_first": share(clean_first, "failed_advantage", "failed"),
        "clean_last": share(clean_last, "failed_advantage", "failed"),
    }
    return [text.format(**values) for text in (TOLD, CLEANER)]


def table(lines: Iterable[Mapping[str, Any]], arms: Sequence[str]) -> list[str]:
    """Return the table of the training data of arms, over all seeds; arms without counts are omitted.

    Args:
        lines: Lines of the comparison with one share of injected faults.
        arms: Names of the arms.
    """
    text = [
        "| arm | steps | share of groups without training | share of correct episodes with a failing call: played "
        "| kept | kept because of the quota | failing calls trained on, per step | their advantage "
        "| advantage of working calls |",
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
                f"{own['failed'] / len(held) / (end - first + 1):.1f}",
                f"{share(own, 'failed_advantage', 'failed'):+.2f}",
                f"{share(own, 'ran_advantage', 'ran'):+.2f}",
            ]
            text.append("| " + " | ".join([f"`{arm}`" if not quarter else "", f"{first}–{end}", *cells]) + " |")
    return text


def total(counts: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the sum of each count."""
    return {name: sum(one[name] for one in counts) for name in COUNTS}


def share(counts: Mapping[str, float], part: str, whole: str) -> float:
    """Return one count divided by another; 0 if the other one is 0."""
    return counts[part] / counts[whole] if counts[whole] else 0.0
