"""The tables and the figure of ``learning.py``: ``docs/learning.md`` and ``docs/curves.png``, of what was run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

Line = Mapping[str, Any]
BASE = "grpo"
FIFTH = 0.2
"""What the share of failing calls is to fall to, of that of ``BASE``."""
T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""97.5 % points of Student's t from one degree of freedom on (any table of it)."""
FIGURES = {
    "success": "success",
    "failing": "failing calls in correct episodes",
    "length": "tokens of an episode",
}
HEAD = """<!-- Made by `python benchmarks/learning.py page`. Change benchmarks/learning_page.py instead. -->

# What recipes teach

A model of 0.46 M parameters on `rstar2/MathTool-v0` with the problems `{source}`, from one cold start of {sft_steps}
steps on {traces} traces, of which 35 % begin with a failing call and 30 % copy a wrong number. Every figure is of the
same {problems} held-out problems, at the temperature of training, without injected faults, and the mean of the last
fifth of a run's ten evaluations. A tiny model in a small world: the order says little of large ones.

```sh
options="--budget {budget} --source {source} --sft-steps {sft_steps}"
python benchmarks/learning.py compare $options    # every arm and seed; goes on with what is missing
python benchmarks/learning.py curves $options
python benchmarks/learning.py page $options       # this page
```
"""


def interval(differences: Sequence[float]) -> tuple[float, float, float]:
    """Mean of paired differences, and its interval of 95 % by Student's t; infinite for fewer than two.

    Args:
        differences: One a seed.
    """
    middle = mean(differences)
    if len(differences) < 2:
        return middle, -math.inf, math.inf
    degrees = len(differences) - 1
    half = T[min(degrees, len(T)) - 1] * stdev(differences) / math.sqrt(len(differences))
    return middle, middle - half, middle + half


def compared(lines: Sequence[Line], faults: float, base: str = BASE) -> list[dict[str, Any]]:
    """Each arm against the base, seed by seed.

    Args:
        lines: Of the comparison.
        faults: With which share of injected faults.
        base: The arm that the others are compared with.

    Returns:
        Of each arm its name, its figures by seed, and against the base the mean and interval of the differences, and
        the mean ratio of failing calls, over the seeds that both have.
    """
    by_arm: dict[str, dict[int, Line]] = {}
    for line in lines:
        if line["counts"] == "trained" and line["faults"] == faults:
            by_arm.setdefault(line["arm"], {})[line["seed"]] = line
    found = []
    for arm in sorted(by_arm, key=lambda name: (name != base, name)):
        own, other = by_arm[arm], by_arm.get(base, {})
        both = sorted(own.keys() & other.keys()) if arm != base else []
        names = ("success", "failing", "length_right")
        apart = {name: interval([own[seed][name] - other[seed][name] for seed in both]) for name in names if both}
        failing = [sum(one[seed]["failing"] for seed in both) for one in (own, other)]
        share = failing[0] / failing[1] if both and failing[1] else math.nan
        found.append({"arm": arm, "seeds": dict(sorted(own.items())), "apart": apart, "share": share})
    return found


def holds(row: Mapping[str, Any]) -> bool:
    """Whether an arm teaches what Resample-on-Correct is for: as many right, a fifth of the failures, shorter.

    Success is as good if its interval reaches up to no difference.
    """
    apart = row["apart"]
    return bool(apart and apart["success"][2] >= 0 and row["share"] <= FIFTH and apart["length_right"][0] < 0)


def write_page(lines: Sequence[Line], settings: Mapping[str, Any], docs: Path) -> Path:
    """Write the page, and the figure if there are curves; returns the page's path.

    Args:
        lines: Of all runs.
        settings: What they have in common.
        docs: The folder to write to.
    """
    text = [HEAD.format(**settings)]
    for faults in sorted({line["faults"] for line in lines if line["counts"] == "trained"}):
        text += _comparison(compared(lines, faults), faults, settings)
    curves = [line for line in lines if line["counts"] == "played"]
    if curves:
        text += _curves(curves, settings)
        draw(curves, docs / "curves.png")
    docs.mkdir(parents=True, exist_ok=True)
    path = docs / "learning.md"
    path.write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")
    return path


def _comparison(rows: Sequence[Mapping[str, Any]], faults: float, settings: Mapping[str, Any]) -> list[str]:
    title = f"with {faults:.0%} injected faults" if faults else "without injected faults"
    text = [f"## Compared, {title}", ""]
    text += [
        f"{settings['budget']} episodes are trained on by every arm; arms that choose play twice as many.",
        f"Against `{BASE}`: the mean over seeds of the paired differences, with an interval of 95 % (Student's t).",
        "A seed's figures are success, failing calls in correct episodes, and tokens of a correct episode.",
        "",
    ]
    seeds = sorted({seed for row in rows for seed in row["seeds"]})
    if len(seeds) < 2:
        text[-1:] = ["One seed has no interval, and proves nothing.", ""]
    text += [
        "| arm | "
        + " | ".join(f"seed {seed}" for seed in seeds)
        + " | success | failing calls | of the base's | tokens |"
    ]
    text += ["|" + "---|" * (len(seeds) + 5)]
    for row in rows:
        cells = [_of_seed(row["seeds"].get(seed)) for seed in seeds]
        apart = row["apart"]
        ends = [
            _apart(apart.get(name), digits) for name, digits in (("success", 3), ("failing", 4), ("length_right", 1))
        ]
        share = "" if math.isnan(row["share"]) else f"{row['share']:.2f}"
        text += ["| " + " | ".join([f"`{row['arm']}`", *cells, ends[0], ends[1], share, ends[2]]) + " |"]
    most = max(one["most_success"] for row in rows for one in row["seeds"].values())
    passed = [f"`{row['arm']}`" for row in rows if holds(row)]
    told = f"{', '.join(passed)} reach that" if passed else "no arm reaches that"
    text += [
        "",
        f"The largest success of any evaluation is {most:.3f}. As much success as `{BASE}`, at most a fifth of its",
        f"failing calls, and shorter correct answers: {told}.",
        "",
    ]
    return text


def _curves(lines: Sequence[Line], settings: Mapping[str, Any]) -> list[str]:
    text = [
        "## Curves",
        "",
        f"Every recipe plays {settings['budget']} episodes; what refill plays comes on top. Mean over seeds, ± the",
        "standard deviation over them.",
        "",
        "![Success, failing calls and length over the episodes played](curves.png)",
        "",
        "| recipe | seeds | steps | success | failing calls in correct episodes | tokens of an episode |",
        "|---|---|---|---|---|---|",
    ]
    arms = {line["arm"] for line in lines}
    own = {arm: [line for line in lines if line["arm"] == arm] for arm in arms}
    for arm in sorted(arms, key=lambda name: -mean(line["success"] for line in own[name])):
        cells = [
            _spread([line[name] for line in own[arm]], digits) for name, digits in zip(FIGURES, (3, 4, 1), strict=True)
        ]
        steps = "/".join(sorted({str(line["steps"]) for line in own[arm]}))
        text += ["| " + " | ".join([f"`{arm}`", str(len(own[arm])), steps, *cells]) + " |"]
    better = {line["arm"] for line in lines if mean(one["success"] for one in own[line["arm"]]) < _mean_of(own, BASE)}
    if BASE in arms:
        worse = ", ".join(f"`{arm}`" for arm in sorted(better)) or "none"
        text += ["", f"Less success than plain `{BASE}` on this budget: {worse}."]
    return [*text, ""]


def draw(lines: Sequence[Line], path: Path) -> Path:
    """Draw the curves: mean over seeds as a line, least to largest as a band."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    arms = sorted({line["arm"] for line in lines}, key=lambda name: (name != BASE, name))
    figure, axes = plt.subplots(1, len(FIGURES), figsize=(15, 5.2), dpi=110)
    colours = plt.get_cmap("tab20")
    for number, arm in enumerate(arms):
        for axis, name in zip(axes, FIGURES, strict=True):
            values: dict[float, list[float]] = {}
            for line in lines:
                for point in line["curve"] if line["arm"] == arm else ():
                    values.setdefault(point["episodes"], []).append(point[name])
            x = sorted(values)
            style = {"color": "black" if arm == BASE else colours(number % 20), "zorder": 3 if arm == BASE else 2}
            axis.plot(x, [mean(values[at]) for at in x], linewidth=2 if arm == BASE else 1.1, label=arm, **style)
            axis.fill_between(x, [min(values[at]) for at in x], [max(values[at]) for at in x], alpha=0.1, **style)
    for axis, heading in zip(axes, FIGURES.values(), strict=True):
        axis.set_title(heading, fontsize=10, loc="left")
        axis.set_xlabel("episodes played")
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)
    return path


def _mean_of(own: Mapping[str, Sequence[Line]], arm: str) -> float:
    return mean(line["success"] for line in own[arm]) if arm in own else -math.inf


def _of_seed(line: Line | None) -> str:
    return "" if line is None else f"{line['success']:.3f}, {line['failing']:.4f}, {line['length_right']:.1f}"


def _apart(found: tuple[float, float, float] | None, digits: int) -> str:
    if found is None:
        return ""
    middle, low, high = found
    between = f" ({low:+.{digits}f} to {high:+.{digits}f})" if math.isfinite(low) else ""
    return f"{middle:+.{digits}f}{between}"


def _spread(values: Sequence[float], digits: int) -> str:
    around = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{around}"
