"""Write the tables and the figure of ``learning.py``: ``docs/learning.md`` and its pictures, from the recorded runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from textwrap import wrap
from typing import Any

import learning_cause
from learning_runs import CURVES, LAST

Line = Mapping[str, Any]
BASE = "grpo"
WIDTH = 120
FIFTH = 0.2
"""Target ratio of the share of failing calls to that of ``BASE``."""
T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""97.5 % points of Student's t from one degree of freedom on (any table of it)."""
FIGURES = {
    "success": "success",
    "failing": "failing calls in correct episodes",
    "length": "tokens of an episode",
}
SHORT = ("grpo_roc", "grpo_roc_clean")
"""The arms of the short table, in addition to ``BASE``."""
SHORT_FIGURES = {
    "success": ("success", 3),
    "failing": ("failing calls, share of calls in correct episodes", 3),
    "length_right": ("tokens of a correct episode", 1),
}
SCHEMES = {
    "light": ("#222222", "#ffffff", "#1f5fbf", "#8a8a8a"),
    "dark": ("#e6e6e6", "#1e2129", "#6ea8fe", "#9a9a9a"),
}
"""Colours of text, paper, a recipe and ``BASE``, for light and dark pages."""
HEAD = """<!-- Made by `python benchmarks/learning.py page`. Change benchmarks/learning_page.py instead. -->

# Learning curves

A model with a tenth of a million parameters (2 layers, width 64) on `rstar2/MathTool-v0`, with arithmetic problems
whose numbers it often copies wrongly, from one cold start. Every figure is on held-out problems at the temperature of
training, without injected faults, and is the mean of the evaluations in the last fifth of a run's steps: in the
comparison those after 36 and 40 of 40 steps (the last two of ten equally spaced ones; the first eight are skipped), in
the curves the last of four. This is a tiny model in a small world: the ranking says little about large models.

```sh
python benchmarks/learning.py compare    # every arm and seed that benchmarks/learning_*.jsonl lack
python benchmarks/learning.py curves     # and with --world teaching
python benchmarks/learning.py page       # this page
python benchmarks/learning.py table      # the short comparison, as printed by `make compare`
```
"""


WORLDS = {
    "indifferent": (
        "If failing calls cost nothing",
        "Of {traces} traces of the cold start ({sft_steps} steps, problems `{source}`), {errors} begin with a call "
        "that fails ({mistakes}) and is then corrected; the others make the right call twice. So the cold start is "
        "right equally often after a failing first call and after a working one (50 and 49 % of 1,024 episodes), and "
        "the reward does not depend on failing calls: the situation in which the paper found that GRPO keeps its "
        "errors. "
        "Learning rate {learning_rate}.",
    ),
    "teaching": (
        "If failing calls cost reward",
        "The same, but traces without a failing call make one call, and calls fail in more ways ({mistakes}): episodes "
        "that start with a failing call are right less often, so every algorithm learns to avoid them. "
        "Learning rate {learning_rate}.",
    ),
}
"""Title and description of each world."""


TRIED = """## Settings that were tried

The comparison needs a cold start whose right answers often follow a failing call that costs no reward, and problems
that are hard for another reason. The table lists cold starts, on held-out problems; the last column is the share of
right answers if the first call ran, and if it failed (an exception / a syntax error, if both are given). Failing calls
are those of right episodes:

| model | problems | traces | success | failing calls | right after a call that ran, failed |
|---|---|---|---|---|---|
| 0.46 M parameters, characters | `arithmetic:level=3` | 35 % fail first, 30 % copy wrongly | .22 | .07 | |
| 0.1 M, words and pairs of digits | `arithmetic:level=2` | 70 %, 30 % | .19 | .16 | |
| the same | `arithmetic:level=1,max_number=199` | 70 % fail first | .67 | .24 | .76, .59 / .43 |
| the same, 1,500 steps | the same | the same | .85 | .30 | .92, .81 / .72 |
| 600 steps, the others call twice | the same | the same | .52 | .25 | .54, .62 / .20 |
| the same, no syntax errors | the same | the same | .55 | .25 | .56, .57 |
| the same, no undefined names either: **used above** | the same | the same | .49 | .30 | .49, .50 |
| the same, only divisions by zero | the same | the same | .72 | .34 | .67, .75 |

In the third, answers are right less often after a failing call than after a working one, so plain GRPO learns to
avoid failing calls because of the answer: 40 steps at a learning rate of 1e-3 took the share of failing calls from
.24 to .021 and .012 (seeds 0 and 1; in the latter success fell to .58), `grpo_roc` by rank to .007 and .007,
`grpo_roc_ties` to .001 and .007, `grpo_roc_clean` to .005 and .010: a third to a half of an already small share. In
the sixth, where failing calls cost nothing, one seed of the same training took it to .36 under `grpo`, .025 under
`grpo_roc` by rank, .013 under `grpo_roc_ties` and .015 under `grpo_roc_clean`, with more success (.54; .61, .56,
.62); but a call with an undefined name is shorter than the right one, so cleaner answers are longer there.
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
        lines: Lines of the comparison.
        faults: With which share of injected faults.
        base: The arm that the others are compared with.

    Returns:
        The name of each arm, its figures by seed, and against the base the mean and interval of the differences, and
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
    """Whether an arm reaches the aim of Resample-on-Correct: as many right answers, a fifth of the failures, shorter.

    Success is as good if its interval reaches up to no difference.
    """
    apart = row["apart"]
    return bool(apart and apart["success"][2] >= 0 and row["share"] <= FIFTH and apart["length_right"][0] < 0)


def short_table(lines: Sequence[Line], settings: Mapping[str, Any]) -> str:
    """Return the short comparison as Markdown: results of each of ``SHORT``, and paired intervals against ``BASE``.

    Args:
        lines: Lines of the comparison.
        settings: Their common settings.
    """
    seeds = {line["seed"] for line in lines if line["arm"] == BASE and line["counts"] == "trained"}
    text = [
        f"| {len(seeds)} seeds, {settings['problems']:,} held-out problems (`make compare`) | "
        + " | ".join(f"`{arm}`" for arm in (BASE, *SHORT))
        + " |",
        "|---|" + "---:|" * (1 + len(SHORT)),
    ]
    for faults in sorted({line["faults"] for line in lines if line["counts"] == "trained"}):
        rows = {row["arm"]: row for row in compared(lines, faults)}
        trained = f"with {faults:.0%} of the training calls made to fail: " if faults else ""
        for name, (title, digits) in SHORT_FIGURES.items():
            cells = []
            for arm in (BASE, *SHORT):
                found = f"{mean(line[name] for line in rows[arm]['seeds'].values()):.{digits}f}"
                apart = rows[arm]["apart"].get(name)
                cells.append(found if apart is None else f"{found} ({apart[1]:+.{digits}f} to {apart[2]:+.{digits}f})")
            text.append(f"| {trained}{title} | " + " | ".join(cells) + " |")
    return "\n".join(text) + "\n"


def write_page(told: Mapping[str, tuple[Sequence[Line], Mapping[str, Any]]], docs: Path) -> Path:
    """Write the page, and the figures if there are curves; return the page's path.

    Args:
        told: By the name of a world, the lines of all its runs and what they have in common.
        docs: The folder to write to.
    """
    text = [HEAD]
    for name, (lines, settings) in told.items():
        title, world = WORLDS[name]
        mistakes = ", ".join(settings["call_mistakes"].replace("_", " ").split("+"))
        shares = {"errors": f"{100 * settings['error_rate']:g} %", "mistakes": mistakes}
        text += [f"## {title}", "", *wrap(world.format(**{**settings, **shares}), WIDTH, break_on_hyphens=False), ""]
        for faults in sorted({line["faults"] for line in lines if line["counts"] == "trained"}):
            text += _comparison(compared(lines, faults), faults, settings)
        text += learning_cause.section([line for line in lines if line["counts"] == "trained"])
        curves = [line for line in lines if line["counts"] == "played"]
        if curves:
            text += _curves(curves, settings, name)
            draw(curves, docs / "pictures", name)
        if not lines:
            text += ["No run of these settings has been made yet.", ""]
    text.append(TRIED)
    docs.mkdir(parents=True, exist_ok=True)
    path = docs / "learning.md"
    path.write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")
    return path


def _comparison(rows: Sequence[Mapping[str, Any]], faults: float, settings: Mapping[str, Any]) -> list[str]:
    title = f"with {faults:.0%} injected faults" if faults else "without injected faults"
    text = [f"### Compared, {title}", ""]
    text += [
        f"Every arm trains on {settings['budget']} episodes; arms that select play twice as many.",
        f"Evaluations use {settings['problems']} held-out problems.",
        f"Compared with `{BASE}`: the mean over seeds of the paired differences, with a 95 % interval (Student's t).",
        "The figures of a seed are success, failing calls in correct episodes, and tokens of a correct episode.",
        "",
    ]
    seeds = sorted({seed for row in rows for seed in row["seeds"]})
    if len(seeds) < 2:
        text[-1:] = ["A single seed has no interval, and proves nothing.", ""]
    text += [
        "| arm | "
        + " | ".join(f"seed {seed}" for seed in seeds)
        + " | success | failing calls | ratio to base | tokens |"
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
    early = {row["arm"]: [line for line in row["seeds"].values() if _late(line) < 2] for row in rows}
    if alone := [f"`{arm}`" for arm, found in early.items() if found]:
        several = all(len(found) in (0, len(seeds)) for found in early.values())
        text += [
            "",
            f"For {', '.join(alone)}, {'all' if several else 'some'} runs were evaluated only once in that fifth:",
        ]
        text += ["after the last step."]
    most = max(one["most_success"] for row in rows for one in row["seeds"].values())
    passed = [f"`{row['arm']}`" for row in rows if holds(row)]
    told = f"reached by {', '.join(passed) or 'no arm'}"
    text += [
        "",
        f"The largest success of any evaluation is {most:.3f}. The aim (as much success as `{BASE}`, at most a",
        f"fifth of its failing calls, and shorter correct answers) is {told}.",
        "",
    ]
    return text


def _curves(lines: Sequence[Line], settings: Mapping[str, Any], world: str) -> list[str]:
    picture = f"pictures/curves-{world}"
    text = [
        "### Curves",
        "",
        f"Every recipe plays {settings['curve_budget']} episodes, plus refills and rollouts outside the groups.",
        f"Evaluations use {settings['curve_problems']} held-out problems.",
        "All have 8 problems a step, groups of 8, temperature 1, the learning rate above, and at most 160 tokens an",
        "episode, regardless of the recipe. The teacher of `opsd` is the policy itself with the answer in its prompt.",
        "Mean over seeds, ± the standard deviation over them. In the figure, bands are the range over seeds, and",
        f"`{BASE}` is the grey curve behind every recipe.",
        "",
        f"![Success, failing calls and length]({picture}-light.png#gh-light-mode-only)",
        f"![Success, failing calls and length, on a dark page]({picture}-dark.png#gh-dark-mode-only)",
        "",
        "| recipe | seeds | steps | success | failing calls in correct episodes | tokens of an episode |",
        "|---|---|---|---|---|---|",
    ]
    arms = {line["arm"] for line in lines}
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
        text += ["", f"Less success than plain `{BASE}` on this budget: {worse}."]
    if left := [f"`{arm}`" for arm in CURVES if arm not in arms]:
        text += ["", f"Not run yet in this world: {', '.join(left)}."]
    return [*text, ""]


def draw(lines: Sequence[Line], folder: Path, world: str) -> list[Path]:
    """Draw the curves, once for light pages and once for dark ones: a row of small plots for each recipe.

    Mean over seeds as a line, least to largest as a band, with those of ``BASE`` behind every recipe.

    Args:
        lines: Lines of the runs of the curves.
        folder: Where ``curves-WORLD-light.png`` and ``curves-WORLD-dark.png`` go.
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
    """The figure: two recipes a line, three plots each, of which a column shares its axis."""
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
    """Episodes played; mean, least and largest over seeds."""
    values: dict[float, list[float]] = {}
    for line in lines:
        for point in line["curve"]:
            values.setdefault(point["episodes"], []).append(point[name])
    x = sorted(values)
    return x, [mean(values[at]) for at in x], [min(values[at]) for at in x], [max(values[at]) for at in x]


def _late(line: Line) -> int:
    """How many evaluations count."""
    return sum(point["step"] > LAST * line["curve"][-1]["step"] for point in line["curve"])


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
