"""Train eight recipes with the same number of generated tokens: which one should I use?

    python benchmarks/bakeoff.py run [--runs 10] [--out FOLDER]     # the runs that are missing
    python benchmarks/bakeoff.py left                               # which these are
    python benchmarks/learning.py page                              # tables of what is there, into docs/

The runs are made by ``learning.py``, with the same tiny model, a cold start for each world, and evaluations of held-out
problems at the temperature of training. Every recipe has its own options, unchanged; only the shared settings of
``learning.py`` (problems a step, size of a group, limits of an episode) are the same for all. A run ends when its
policy has generated ``token_budget`` tokens in training; rejected and refilled episodes count. The learning rate of a
recipe in a world is the best of ``RATES`` on ``RATE_SEED``, which no result counts; ties go to the smaller rate. A run
is one line of ``benchmarks/bakeoff_WORLD.jsonl`` and is not repeated; a killed run begins from the start. Run folders
in ``--out`` keep their episodes.

What it does not show: anything about large models, or about time.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from learning import ROOT, make_all
from learning_runs import Results, Run

RECIPES = ("grpo", "grpo_roc", "dapo", "gspo", "cispo", "dr_grpo", "rloo", "reinforce_pp")
RATES = (2e-4, 5e-4, 1.25e-3)
RATE_SEED, SEEDS = 3, (0, 1, 2)
WORLDS: dict[str, Mapping[str, Any]] = {
    "arithmetic": {
        "source": "arithmetic:level=1,max_number=999",
        "call_mistakes": "undefined_name+misspelt+division_by_zero+syntax",
        "twice": 0,
    },
    "countdown": {
        "env": "rstar2/Countdown-v0",
        "source": "countdown:numbers=3,largest=20,least_target=10,largest_target=99",
    },
}
"""Settings by the name of the world that they make, over the defaults."""
RESULTS = {name: ROOT / "benchmarks" / f"bakeoff_{name}.jsonl" for name in WORLDS}
Line = Mapping[str, Any]


def rate_runs(recipes: Sequence[str] = RECIPES) -> list[Run]:
    """Return the runs that choose the learning rates."""
    return [Run(recipe, RATE_SEED, 0.0, "tokens", rate) for recipe in recipes for rate in RATES]


def chosen_rates(lines: Sequence[Line]) -> dict[str, float]:
    """Return the best learning rate of each recipe whose runs on ``RATE_SEED`` are all there."""
    found: dict[str, float] = {}
    for recipe in RECIPES:
        tried = {line["rate"]: line["success"] for line in lines if (line["arm"], line["seed"]) == (recipe, RATE_SEED)}
        if set(tried) >= set(RATES):
            found[recipe] = max(RATES, key=lambda rate: (tried[rate], -rate))
    return found


def seed_runs(lines: Sequence[Line], seed: int) -> list[Run]:
    """Return the runs of a seed, each at its recipe's chosen rate; recipes without one are left out."""
    return [Run(recipe, seed, 0.0, "tokens", rate) for recipe, rate in chosen_rates(lines).items()]


def open_results(asked: Mapping[str, Any] = {}, paths: Mapping[str, Path] = RESULTS) -> dict[str, Results]:
    """Return the file of results of each world."""
    return {world: Results(path, {**WORLDS[world], **asked}) for world, path in paths.items()}


def missing(results: Results) -> int:
    """Return how many runs of a world are missing, those included whose rate is not known yet."""
    lines = results.lines()
    chosen = chosen_rates(lines)
    unknown = (len(RECIPES) - len(chosen)) * len(SEEDS)
    left = [*results.missing(rate_runs()), *(run for seed in SEEDS for run in results.missing(seed_runs(lines, seed)))]
    return len(left) + unknown


def run_all(results: Mapping[str, Results], out: Path, most: int | None = None) -> int:
    """Make missing runs: all rates of each world, then seed by seed, so that what is there compares already.

    Args:
        results: The file of results of each world.
        out: Folder of the runs.
        most: Maximum number of runs to make.

    Returns:
        The number of runs that are missing still.
    """
    for seed in (RATE_SEED, *SEEDS):
        for world, own in results.items():
            runs = own.missing(rate_runs() if seed == RATE_SEED else seed_runs(own.lines(), seed))
            if most is not None:
                runs, most = runs[:most], most - len(runs[:most])
            if runs:
                make_all(runs, own, out / world)
    return sum(missing(own) for own in results.values())


def main(given: Sequence[str] | None = None) -> int:
    """Make runs, or count those that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "left"))
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "bakeoff", help="folder of the runs")
    parser.add_argument("--runs", type=int, help="maximum number of runs to make")
    options = parser.parse_args(given)
    results = open_results()
    if options.what == "run":
        run_all(results, options.out, options.runs)
    for world, own in results.items():
        print(f"{world}: {missing(own)} of {len(RECIPES) * (len(RATES) + len(SEEDS))} runs are missing.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
