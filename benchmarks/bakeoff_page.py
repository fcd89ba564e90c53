"""Write the section of the bake-off, "Which one should I use?", for ``docs/learning.md``, from the recorded runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import mean
from textwrap import wrap
from typing import Any

from bakeoff import RATE_SEED, RATES, RECIPES, SEEDS, chosen_rates
from learning_compare import Line, apart_text, compared, interval

BASE = "grpo"
WIDTH = 120
WORLDS = {
    "arithmetic": "`rstar2/MathTool-v0` with the problems `{source}`. In {errors} of the traces of the cold start, the "
    "first call fails and is then corrected. Episodes fail because calls fail or numbers are copied wrongly.",
    "countdown": "`rstar2/Countdown-v0`, one turn without a tool: the problems are `{source}`. The cold start is "
    "trained on gold answers.",
}
"""Description of each world."""
Told = Mapping[str, tuple[Sequence[Line], Mapping[str, Any]]]


def section(told: Told) -> list[str]:
    """Return the lines of the section; an empty list without runs.

    Args:
        told: The lines of all runs and their common settings, by the name of the world.
    """
    told = {world: (own, settings) for world, (own, settings) in told.items() if own}
    if not told:
        return []
    every = [line for own, _ in told.values() for line in own]
    budgets = {settings["token_budget"] for _, settings in told.values()}
    planned = len(RECIPES) * (len(RATES) + len(SEEDS)) * len(WORLDS)
    hours = sum(line["cpu_seconds"] for line in every) / 3600
    text = ["## Which one should I use?", ""]
    for world, (own, _) in told.items():
        text += _wrapped(f"- *{world.capitalize()}*: {_answer(own)}", indent="  ")
    text += ["", *_wrapped(_how(budgets, told))]
    made = (
        f"{len(every)} of {planned} planned runs are in the tables. All runs together took {hours:.1f} hours of CPU "
        "time; each had one core of a busy machine. The tables contain no times."
    )
    text += ["", *_wrapped(made), ""]
    text += ["```sh", "python benchmarks/bakeoff.py run     # make the runs that are missing, in slices with --runs 10"]
    text += ["python benchmarks/bakeoff.py left    # count the runs that are missing", "```", ""]
    for world, (own, settings) in told.items():
        text += _world(world, own, settings)
    return text


def _how(budgets: set[int], told: Told) -> str:
    problems = " or ".join(sorted({str(settings["bakeoff_problems"]) for _, settings in told.values()}))
    tokens = " or ".join(f"{budget:,}" for budget in sorted(budgets))
    return (
        f"Every run begins with the cold start of its world and ends when its policy has generated {tokens} tokens in "
        "training (the hook [`token_budget`](trainers/hooks.md#token_budget)); tokens of rejected and refilled "
        "episodes count. All recipes use 8 problems a step, groups of 8 and temperature 1; their other options differ. "
        f"The learning rate of each recipe and world is the best of {', '.join(f'{rate:g}' for rate in RATES)} on seed "
        f"{RATE_SEED}, which is not in the means. Learning rates were chosen on the {problems} held-out problems that "
        "also give the means, so means are slightly too high, for all recipes alike. An interval is a 95 % interval "
        "over seeds (Student's t). With three seeds, intervals are wide, and seven recipes are compared with one, so "
        "an interval that barely excludes 0 is weak evidence."
    )


def _rows(lines: Sequence[Line], base: str) -> list[dict[str, Any]]:
    """Compare the recipes with one of them, on the seeds that are finished for all of ``RECIPES``."""
    finished = [line for line in lines if line["seed"] in SEEDS]
    made = {(line["arm"], line["seed"]) for line in finished}
    whole = {seed for seed in SEEDS if all((recipe, seed) in made for recipe in RECIPES)}
    found = compared([line for line in finished if line["seed"] in whole], 0.0, base, counts="tokens")
    if len(whole) == len(SEEDS):
        return found
    for row in found:  # an interval of two seeds says nothing
        row["apart"] = {name: (middle, -math.inf, math.inf) for name, (middle, *_) in row["apart"].items()}
    return found


def _answer(lines: Sequence[Line]) -> str:
    """Return which recipes are best in a world, according to the intervals."""
    before = mean(line["curve"][0]["success"] for line in lines)
    means = {row["arm"]: mean(line["success"] for line in row["seeds"].values()) for row in _rows(lines, BASE)}
    if not means:
        return "the runs that choose the learning rates are made; no seed is finished."
    best = max(means, key=lambda recipe: means[recipe])
    seeds = len(_rows(lines, BASE)[0]["seeds"])
    if seeds < len(SEEDS):
        others = sorted((recipe for recipe in means if recipe != best), key=lambda recipe: -means[recipe])
        return (
            f"`{best}` has the highest mean success, {means[best]:.3f} (cold start: {before:.3f}), then "
            f"{_list(others, means)}. Only {seeds} of {len(SEEDS)} seeds are finished, so no interval is given."
        )
    apart = {row["arm"]: row["apart"].get("success") for row in _rows(lines, best) if row["arm"] != best}
    worse = [recipe for recipe, found in apart.items() if found and found[2] < 0]
    equal = [recipe for recipe in apart if recipe not in worse]
    order = sorted(equal, key=lambda recipe: -means[recipe])
    return (
        f"`{best}` has the highest success, {means[best]:.3f} (cold start: {before:.3f}). "
        + (f"Not distinguishable from `{best}` by the intervals: {_list(order, means)}. " if order else "")
        + (
            f"Lower than `{best}` (interval of the difference below 0): "
            f"{_list(sorted(worse, key=lambda recipe: -means[recipe]), means)}."
            if worse
            else ""
        )
    ).strip()


def _list(recipes: Sequence[str], means: Mapping[str, float]) -> str:
    return ", ".join(f"`{recipe}` {means[recipe]:.3f}" for recipe in recipes)


def _world(world: str, lines: Sequence[Line], settings: Mapping[str, Any]) -> list[str]:
    told = WORLDS[world].format(**{**settings, "errors": f"{100 * settings['error_rate']:g} %"})
    calls = any(line["failing"] for line in lines)
    shown = ("success", "failing calls", "tokens of an episode") if calls else ("success", "tokens of an episode")
    text = [f"### {world.capitalize()}", "", *_wrapped(told), ""]
    text += _wrapped(
        f"The column of a seed shows the success on {settings['bakeoff_problems']} held-out problems after training."
    )
    text += ["", "| recipe | rate | " + " | ".join(f"seed {seed}" for seed in SEEDS)]
    text[-1] += f" | success, mean | difference from `{BASE}` | " + " | ".join(f"{name}, mean" for name in shown[1:])
    text[-1] += " | steps | episodes |"
    text += ["|---|---:|" + "---:|" * (len(SEEDS) + 2 + len(shown) - 1 + 2)]
    rows = _rows(lines, BASE)
    for row in sorted(rows, key=lambda row: -mean(line["success"] for line in row["seeds"].values())):
        own = list(row["seeds"].values())
        middle, low, high = interval([line["success"] for line in own])
        spread = (
            f"{middle:.3f} ({max(low, 0):.3f} to {min(high, 1):.3f})" if len(own) == len(SEEDS) else f"{middle:.3f}"
        )
        cells = [f"`{row['arm']}`", f"{own[0]['rate']:g}"]
        cells += [f"{row['seeds'][seed]['success']:.3f}" if seed in row["seeds"] else "" for seed in SEEDS]
        cells += [spread, apart_text(row["apart"].get("success"), 3)]
        cells += [f"{mean(line['failing'] for line in own):.3f}"] * calls
        cells += [f"{mean(line['length'] for line in own):.1f}"]
        cells += [f"{mean(line[name] for line in own):,.0f}" for name in ("steps", "episodes")]
        text += ["| " + " | ".join(cells) + " |"]
    chosen = chosen_rates(lines)
    tried = {(line["arm"], line["rate"]): line["success"] for line in lines if line["seed"] == RATE_SEED}
    text += ["", f"Success on seed {RATE_SEED} by learning rate; the chosen rate is bold:", ""]
    text += ["| recipe | " + " | ".join(f"{rate:g}" for rate in RATES) + " |", "|---|" + "---:|" * len(RATES)]
    for recipe in RECIPES:
        if not any((recipe, rate) in tried for rate in RATES):
            continue
        cells = [_tried(tried.get((recipe, rate)), chosen.get(recipe) == rate) for rate in RATES]
        text += ["| " + " | ".join([f"`{recipe}`", *cells]) + " |"]
    commits = ", ".join(sorted({f"`{line['commit']}`" for line in lines}))
    return [*text, "", f"Commit of the runs: {commits}.", ""]


def _tried(success: float | None, chosen: bool) -> str:
    if success is None:
        return ""
    return f"**{success:.3f}**" if chosen else f"{success:.3f}"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return wrap(text, WIDTH, break_on_hyphens=False, break_long_words=False, subsequent_indent=indent)
