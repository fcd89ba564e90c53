"""Write the tables and the figure of ``learning.py``: ``docs/learning.md`` and its pictures, from the recorded runs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from textwrap import wrap
from typing import Any

import bakeoff_page
import learning_cause
from bakeoff_page import Told
from learning_compare import BASE, Line, apart_text, compared, holds, short_results, short_table
from learning_runs import CURVES, EARLIER, LAST

PAGE = "learning.md"
"""Name of the page in ``docs/``."""
WIDTH = 120
MISTAKES = {"misspelt": "misspelt name", "syntax": "syntax error"}
"""Text for the kinds of mistakes whose names are not clear in a sentence."""
FIGURES = {
    "success": "success",
    "failing": "failing calls in correct episodes",
    "length": "tokens of an episode",
}
SCHEMES = {
    "light": ("#222222", "#ffffff", "#1f5fbf", "#8a8a8a"),
    "dark": ("#e6e6e6", "#1e2129", "#6ea8fe", "#9a9a9a"),
}
"""Colours of text, paper, a recipe and ``BASE``, for light and dark pages."""
HEAD = """<!-- Made by `python benchmarks/learning.py page`. Change benchmarks/learning_page.py instead. -->

# Learning curves

This page compares recipes on a very small model: 0.1 million parameters, 2 layers, width 64. All runs in one world (an
environment with its problems) start from one cold start, a checkpoint trained by supervised fine-tuning. The ranking
says little about large models.
"""
TERMS = """## Comparison of failing calls, and curves

The environment of the comparison and the curves is `rstar2/MathTool-v0` with arithmetic problems. The model often
copies the numbers of a problem wrongly. Terms:

- *Arm*: a recipe with its options. *World*: the cold start (its traces and its options) and the learning rate.
- *Success*: share of held-out episodes with a correct answer.
- *Failing calls*: share of failing calls among all calls in correct episodes.
- *Tokens*: mean number of tokens of an episode after its prompt.

Evaluations use held-out problems, the temperature of training, and no injected faults. A figure is the mean of the
evaluations in the last fifth of a run's steps:

| section | evaluations in a run | evaluations that count |
|---|---|---|
| comparison, 40 steps | ten at equal distances; the first eight are skipped | after steps 36 and 40 |
| curves | four | the last one |

```sh
python benchmarks/learning.py compare    # run every arm and seed that is missing in benchmarks/learning_*.jsonl
python benchmarks/learning.py curves     # run the curves; also with --world teaching
python benchmarks/learning.py page       # write this page
python benchmarks/learning.py table      # print the short comparison, like `make compare`
```
"""


WORLDS = {
    "indifferent": (
        "If failing calls cost nothing",
        "The cold start is trained on {traces} traces for {sft_steps} steps; the problems are `{source}`. In {errors} "
        "of the traces, the first call fails ({mistakes}) and is then corrected; in the other traces, the right call "
        "is made twice. After the cold start, 50 % of the episodes with a failing first call are correct, and 49 % of "
        "those with a working first call (1,024 episodes). The reward therefore does not depend on failing calls. In "
        "this situation, the authors of rStar2-Agent found that GRPO does not lower the share of tool errors. "
        "Learning rate: {learning_rate}.",
    ),
    "teaching": (
        "If failing calls cost reward",
        "This world differs from that of the previous section in two ways: traces without a failing call make one "
        "call instead of two, and calls fail in more ways ({mistakes}). Episodes that start with a failing call are "
        "correct less often, so every algorithm learns to avoid failing calls. The learning rate is {learning_rate}.",
    ),
}
"""Title and description of each world."""


TRIED = """## Settings that were tried

The comparison requires two properties of the cold start: its correct answers often follow a failing call, and a failing
call does not lower the reward. The problems must be hard for a reason other than failing calls. The table lists the
cold starts that were tried, with results on held-out problems. The last three columns show the share of correct answers
by the result of the first call. The tokens of model A are characters; the tokens of model B are words and pairs of
digits.

| # | model | problems | traces | success | failing calls | first call ran | exception | syntax error |
|---|---|---|---|---|---|---|---|---|
| 1 | A, 0.46 M parameters | `arithmetic:level=3` | 35 % fail first, 30 % copy wrongly | .22 | .07 | | | |
| 2 | B, 0.1 M parameters | `arithmetic:level=2` | 70 % fail first, 30 % copy wrongly | .19 | .16 | | | |
| 3 | as 2 | `arithmetic:level=1,max_number=199` | 70 % fail first | .67 | .24 | .76 | .59 | .43 |
| 4 | as 2, 1,500 steps | as 3 | as 3 | .85 | .30 | .92 | .81 | .72 |
| 5 | as 2, 600 steps | as 3 | as 3; the other traces make the call twice | .52 | .25 | .54 | .62 | .20 |
| 6 | as 5 | as 3 | as 5, without syntax errors | .55 | .25 | .56 | .57 | |
| 7, **used above** | as 5 | as 3 | as 6, without undefined names | .49 | .30 | .49 | .50 | |
| 8 | as 5 | as 3 | as 7, with divisions by zero only | .72 | .34 | .67 | .75 | |

In cold start 3, answers are correct less often after a failing call than after a working one. Plain GRPO therefore
learns to avoid failing calls although only the answer is rewarded. In the answers of cold start 6, failing calls do
not lower the reward. The next table has the share of failing calls after 40 steps at a learning rate of 1e-3, and for
cold start 6 also the success:

| recipe | cold start 3 (.24 before), seed 0 | cold start 3, seed 1 | cold start 6, one seed | success, cold start 6 |
|---|---|---|---|---|
| `grpo_clip_higher` | .021 | .012 (success fell to .58) | .36 | .54 |
| `grpo_roc` by rank | .007 | .007 | .025 | .61 |
| `grpo_roc_ties` | .001 | .007 | .013 | .56 |
| `grpo_roc_clean` | .005 | .010 | .015 | .62 |

In the runs from cold start 3, `grpo_clip_higher` already ends with a small share of failing calls; the other recipes
end with a quarter to a half of this share (means over the two seeds). In cold start 6, a call with an undefined name is
shorter than the right call, so answers without failing calls are longer.
"""


def write_page(told: Told, docs: Path, baked: Told | None = None) -> Path:
    """Write the page, the file of short results, and the figures if there are curves; return the page's path.

    Args:
        told: The lines of all runs and their common settings, by the name of the world.
        docs: The folder to write to.
        baked: The same of the bake-off.
    """
    data = docs / "data" / "learning.json"
    data.parent.mkdir(parents=True, exist_ok=True)
    data.write_text(json.dumps(short_results(told["indifferent"][0]), indent=1) + "\n", "utf-8")
    for name, (lines, _) in told.items():
        if curves := [line for line in lines if line["counts"] == "played"]:
            draw(curves, docs / "pictures", name)
    docs.mkdir(parents=True, exist_ok=True)
    path = docs / PAGE
    path.write_text(page_text(told, baked), encoding="utf-8")
    return path


def page_text(told: Told, baked: Told | None = None) -> str:
    """Return the text of the page; see ``write_page``."""
    text = [HEAD, *bakeoff_page.section(baked or {}), TERMS]
    for name, (lines, settings) in told.items():
        title, world = WORLDS[name]
        kinds = settings["call_mistakes"].split("+")
        mistakes = ", ".join(MISTAKES.get(kind, kind.replace("_", " ")) for kind in kinds)
        shares = {"errors": f"{100 * settings['error_rate']:g} %", "mistakes": mistakes}
        text += [f"## {title}", "", *wrap(world.format(**{**settings, **shares}), WIDTH, break_on_hyphens=False), ""]
        shares_of_faults = sorted({line["faults"] for line in lines if line["counts"] == "trained"})
        if shares_of_faults:
            text += ["### In short", "", short_table(lines, settings)]
        for faults in shares_of_faults:
            text += _comparison(compared(lines, faults), faults, settings)
        text += learning_cause.section([line for line in lines if line["counts"] == "trained"])
        curves = [line for line in lines if line["counts"] == "played"]
        if curves:
            text += _curves(curves, settings, name)
        if not lines:
            text += ["No run of these settings has been made yet.", ""]
    text.append(TRIED)
    return "\n".join(text).rstrip() + "\n"


def _listed(names: Sequence[str]) -> str:
    """Return the names, separated by commas and before the last by "and"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _comparison(rows: Sequence[Mapping[str, Any]], faults: float, settings: Mapping[str, Any]) -> list[str]:
    title = f"with {faults:.0%} injected faults" if faults else "without injected faults"
    text = [f"### Compared, {title}", ""]
    text += [
        f"Every arm trains on {settings['budget']} episodes. Arms that select episodes play twice as many.",
        f"Evaluations use {settings['problems']} held-out problems. The column of a seed has three figures: success,",
        "failing calls, and tokens of a correct episode. The last four columns compare the arm with",
        f"`{BASE}`: the mean over the seeds of the paired differences, with its 95 % interval (Student's t),",
        "and the ratio of failing calls.",
        "",
    ]
    seeds = sorted({seed for row in rows for seed in row["seeds"]})
    if len(seeds) < 2:
        text[-1:] = ["A single seed has no interval, so it is not evidence.", ""]
    text += [
        "| arm | "
        + " | ".join(f"seed {seed}" for seed in seeds)
        + " | success, difference | failing calls, difference | failing calls, ratio | tokens, difference |"
    ]
    text += ["|" + "---|" * (len(seeds) + 5)]
    for row in rows:
        cells = [_of_seed(row["seeds"].get(seed)) for seed in seeds]
        apart = row["apart"]
        ends = [
            apart_text(apart.get(name), digits)
            for name, digits in (("success", 3), ("failing", 4), ("length_right", 1))
        ]
        share = "" if math.isnan(row["share"]) else f"{row['share']:.2f}"
        text += ["| " + " | ".join([f"`{row['arm']}`", *cells, ends[0], ends[1], share, ends[2]]) + " |"]
    early = {row["arm"]: [line for line in row["seeds"].values() if _late(line) < 2] for row in rows}
    if alone := [f"`{arm}`" for arm, found in early.items() if found]:
        several = all(len(found) in (0, len(seeds)) for found in early.values())
        text += [
            "",
            f"{'All' if several else 'Some'} runs of {_listed(alone)} have only one evaluation in the last",
        ]
        text += ["fifth of their steps: after the last step."]
    most = max(one["most_success"] for row in rows for one in row["seeds"].values())
    passed = [f"`{row['arm']}`" for row in rows if holds(row)]
    told = f"this aim is reached by {_listed(passed) or 'no arm'}."
    text += [
        "",
        f"The largest success in any evaluation is {most:.3f}. The aim is as much success as `{BASE}`, at most a",
        f"fifth of its failing calls, and shorter correct answers; {told}",
        "",
    ]
    return text


def _curves(lines: Sequence[Line], settings: Mapping[str, Any], world: str) -> list[str]:
    picture = f"pictures/curves-{world}"
    arms = {line["arm"] for line in lines}
    text = [
        "### Curves",
        "",
        f"A run of a recipe plays {settings['curve_budget']} episodes in groups. Refilled groups, and episodes that",
        f"belong to no group, are not counted. Evaluations use {settings['curve_problems']} held-out problems. Every",
        "run has 8 problems a step, groups of 8, temperature 1, the learning rate above, and at most 160 tokens per",
        "episode, even if the recipe sets other values. The teacher of `opsd` is the policy itself with the answer in",
        "its prompt.",
        "",
        *wrap(
            "The curves of these recipes were measured with earlier options, which are listed in `EARLIER` of "
            "`benchmarks/learning_runs.py`: "
            f"{', '.join(f'`{arm}`' for arm in EARLIER if arm in arms) or 'none'}.",
            WIDTH,
            break_on_hyphens=False,
        ),
        "",
        "The table shows the mean over the seeds ± the standard deviation. In the figure, a line is the mean, a band",
        f"is the range over the seeds, and the grey curve in each plot is `{BASE}`.",
        "",
        f"![Success, failing calls and length]({picture}-light.png#gh-light-mode-only)",
        f"![Success, failing calls and length, on a dark page]({picture}-dark.png#gh-dark-mode-only)",
        "",
        "| recipe | seeds | steps | success | failing calls in correct episodes | tokens of an episode |",
        "|---|---|---|---|---|---|",
    ]
    own = {arm: [line for line in lines if line["arm"] == arm] for arm in arms}
    for arm in sorted(arms, key=lambda name: (-mean(line["success"] for line in own[name]), name)):
        cells = [
            _spread([line[name] for line in own[arm]], digits) for name, digits in zip(FIGURES, (3, 4, 1), strict=True)
        ]
        steps = "/".join(sorted({str(line["steps"]) for line in own[arm]}))
        text += ["| " + " | ".join([f"`{arm}`", str(len(own[arm])), steps, *cells]) + " |"]
    better = {line["arm"] for line in lines if mean(one["success"] for one in own[line["arm"]]) < _mean_of(own, BASE)}
    if BASE in arms:
        worse = ", ".join(f"`{arm}`" for arm in sorted(better)) or "none"
        text += ["", f"Recipes with less success than plain `{BASE}` after the same number of episodes: {worse}."]
    if left := [f"`{arm}`" for arm in CURVES if arm not in arms]:
        text += ["", f"Recipes without a run in this world: {', '.join(left)}."]
    return [*text, ""]


def draw(lines: Sequence[Line], folder: Path, world: str) -> list[Path]:
    """Draw the curves once for light pages and once for dark pages; return the paths of the two images.

    Each recipe has a row of small plots. A line is the mean over the seeds, and a band is the range from the smallest
    to the largest value. The curve of ``BASE`` is behind the curve of every recipe.

    Args:
        lines: Lines of the runs of the curves.
        folder: Folder in which ``curves-WORLD-light.png`` and ``curves-WORLD-dark.png`` are written.
        world: Name of the world.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for scheme, (ink, paper, own, base) in SCHEMES.items():
        told = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), ink)
        with plt.rc_context({**told, "figure.facecolor": paper, "axes.facecolor": paper, "font.size": 7}):
            figure = _drawn(plt, lines, own, base)
            made.append(folder / f"curves-{world}-{scheme}.png")
            figure.savefig(made[-1], dpi=100)
            plt.close(figure)
    return made


def _drawn(plt: Any, lines: Sequence[Line], own: str, base: str) -> Any:
    """Return the figure: two recipes per row, with three plots each; the plots of a column share their x-axis."""
    arms = sorted({line["arm"] for line in lines} - {BASE}) or [BASE]
    rows, each = math.ceil(len(arms) / 2), len(FIGURES)
    figure, axes = plt.subplots(rows, 2 * each, figsize=(14, 0.6 + 1.25 * rows), sharex=True, squeeze=False)
    highest = {name: max(point[name] for line in lines for point in line["curve"]) for name in FIGURES}
    for number in range(2 * rows):
        row, column = number % rows, number // rows * each
        for at, (name, heading) in enumerate(FIGURES.items()):
            axis = axes[row][column + at]
            if number >= len(arms):
                axis.set_axis_off()
                continue
            for arm, colour in ((BASE, base), (arms[number], own)):
                x, middle, low, high = _band([line for line in lines if line["arm"] == arm], name)
                axis.fill_between(x, low, high, alpha=0.25, color=colour, linewidth=0)
                axis.plot(x, middle, color=colour, linewidth=1.4)
            axis.set_ylim(0, 1.05 * highest[name])
            axis.grid(alpha=0.2)
            axis.spines[["top", "right"]].set_visible(False)
            if row == 0:
                axis.set_title(heading, fontsize=8, loc="left")
            if at == 0:
                axis.set_ylabel(arms[number], fontsize=8)
            if number % rows == rows - 1:
                axis.set_xlabel("episodes played")
    figure.tight_layout()
    return figure


def _band(lines: Sequence[Line], name: str) -> tuple[list[float], list[float], list[float], list[float]]:
    """Return the numbers of played episodes; and for each, mean, minimum and maximum over the seeds."""
    values: dict[float, list[float]] = {}
    for line in lines:
        for point in line["curve"]:
            values.setdefault(point["episodes"], []).append(point[name])
    x = sorted(values)
    return x, [mean(values[at]) for at in x], [min(values[at]) for at in x], [max(values[at]) for at in x]


def _late(line: Line) -> int:
    """Return the number of evaluations in the last fifth of the steps."""
    return sum(point["step"] > LAST * line["curve"][-1]["step"] for point in line["curve"])


def _mean_of(own: Mapping[str, Sequence[Line]], arm: str) -> float:
    return mean(line["success"] for line in own[arm]) if arm in own else -math.inf


def _of_seed(line: Line | None) -> str:
    return "" if line is None else f"{line['success']:.3f}, {line['failing']:.4f}, {line['length_right']:.1f}"


def _spread(values: Sequence[float], digits: int) -> str:
    around = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{around}"
