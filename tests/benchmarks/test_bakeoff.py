"""The bake-off: how rates are chosen, what is missing, that a run stops at its budget, what the page says."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from places import DOCS, ROOT

from rstar2_env.core.run_folder import read_run
from rstar2_env.trainers import TRAINERS

SMALL: dict[str, Any] = {"traces": 6, "sft_steps": 1, "bakeoff_problems": 4, "token_budget": 6000}


@pytest.fixture(scope="module")
def bakeoff(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("bakeoff")


@pytest.fixture(scope="module")
def page(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("bakeoff_page")


@pytest.fixture(scope="module")
def learning_page(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("learning_page")


@pytest.fixture(scope="module")
def learning(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("learning")


def line(recipe: str, seed: int, rate: float, success: float, before: float = 0.2) -> Any:
    point = {"failing": 0.1, "length": 20.0, "length_right": 20.0}
    curve = [{"step": 0, "success": before, **point}, {"step": 9, "success": success, **point}]
    run = {"arm": recipe, "seed": seed, "faults": 0.0, "counts": "tokens", "rate": rate}
    made = {"tokens": 1000, "episodes": 64, "commit": "abc1234", "cpu_seconds": 18.0, "steps": 9}
    return {**run, "curve": curve, "success": success, **point, **made}


def test_the_rate_of_a_recipe_is_the_best_on_a_seed_of_its_own(bakeoff: ModuleType) -> None:
    low, middle, high = bakeoff.RATES
    tuning = bakeoff.RATE_SEED
    tried = {low: 0.3, middle: 0.5, high: 0.5}
    lines = [line("grpo", tuning, rate, success) for rate, success in tried.items()]
    lines += [line("grpo", 0, high, 0.9), line("rloo", tuning, low, 0.4)]
    assert tuning not in bakeoff.SEEDS
    assert bakeoff.chosen_rates(lines) == {"grpo": middle}, "of two equal ones the smaller; rloo has one of three"
    assert [(run.arm, run.seed, run.rate) for run in bakeoff.seed_runs(lines, 1)] == [("grpo", 1, middle)]


def test_runs_whose_rate_is_not_known_yet_are_missing_too(bakeoff: ModuleType, tmp_path: Path) -> None:
    results = bakeoff.open_results(paths={"countdown": tmp_path / "results.jsonl"})["countdown"]
    every = len(bakeoff.RECIPES) * (len(bakeoff.RATES) + len(bakeoff.SEEDS))
    assert bakeoff.missing(results) == every
    for run in bakeoff.rate_runs(["grpo"]):
        results.add(run, success=0.1)
    assert bakeoff.missing(results) == every - len(bakeoff.RATES)
    results.add(bakeoff.seed_runs(results.lines(), 0)[0], success=0.1)
    assert bakeoff.missing(results) == every - len(bakeoff.RATES) - 1


def test_slices_make_all_rates_first_and_then_seed_by_seed(
    bakeoff: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str, Any]] = []

    def make(runs: Any, results: Any, out: Path) -> None:
        for run in runs:
            made.append((out.name, run))
            results.add(run, success=0.1)

    monkeypatch.setattr(bakeoff, "make_all", make)
    results = bakeoff.open_results(paths={name: tmp_path / f"{name}.jsonl" for name in bakeoff.WORLDS})
    rates, recipes = len(bakeoff.rate_runs()), len(bakeoff.RECIPES)
    left = bakeoff.run_all(results, tmp_path, 2 * rates + 1)
    assert [len([one for one in made if one[0] == world]) for world in bakeoff.WORLDS] == [rates + 1, rates]
    assert left == 2 * recipes * len(bakeoff.SEEDS) - 1
    assert bakeoff.run_all(results, tmp_path) == 0
    assert len(made) == len(set(made)) == 2 * (rates + recipes * len(bakeoff.SEEDS))
    seeds = [run.seed for _, run in made[2 * rates :]]
    assert seeds == sorted(seeds)


def test_the_page_tells_who_is_best_and_who_is_worse(bakeoff: ModuleType, page: ModuleType) -> None:
    low = bakeoff.RATES[0]
    shown = {"grpo": (0.70, 0.72, 0.74), "rloo": (0.69, 0.72, 0.73), "dapo": (0.50, 0.53, 0.55)}
    shown |= {name: (0.1, 0.1, 0.1) for name in bakeoff.RECIPES if name not in shown}
    lines = [line(name, seed, low, value) for name, own in shown.items() for seed, value in enumerate(own)]
    lines += [line("dapo", bakeoff.RATE_SEED, rate, 0.99) for rate in bakeoff.RATES]
    settings = dataclasses.asdict(bakeoff.open_results()["countdown"].settings)
    text = " ".join(" ".join(page.section({"countdown": (lines, settings)})).split())
    assert "`grpo` has the highest success, 0.720 (cold start: 0.200)." in text
    assert (
        "Not distinguishable from `grpo` by the intervals: `rloo` 0.713. Lower than `grpo` (interval of the difference "
        "below 0): `dapo` 0.527," in text
    )
    assert "| `dapo` | 0.0002 | 0.500 | 0.530 | 0.550 | 0.527 (0.464 to 0.589) | -0.193" in text, "without seed 3"
    assert "| `dapo` | **0.990** | 0.990 | 0.990 |" in text
    assert "27 of 96 planned runs" in text
    assert "0.1 hours" in text, "27 runs of 18 seconds"


def test_the_page_gives_no_interval_before_all_seeds_are_finished_for_all(
    bakeoff: ModuleType, page: ModuleType
) -> None:
    shown = {**dict.fromkeys(bakeoff.RECIPES, 0.1), "grpo": 0.7, "dapo": 0.5}
    lines = [line(name, seed, 5e-4, value) for name, value in shown.items() for seed in (0, 1)]
    lines.append(line("dapo", 2, 5e-4, 0.99))
    settings = dataclasses.asdict(bakeoff.open_results()["countdown"].settings)
    text = " ".join(" ".join(page.section({"countdown": (lines, settings)})).split())
    assert "`grpo` has the highest mean success, 0.700 (cold start: 0.200), then `dapo` 0.500," in text
    assert "Only 2 of 3 seeds are finished" in text
    assert "| `dapo` | 0.0005 | 0.500 | 0.500 | | 0.500 | -0.200 |" in text, "seed 2 is finished for one only"


def test_a_seed_counts_only_when_every_recipe_has_it(bakeoff: ModuleType, page: ModuleType) -> None:
    lines = [line(name, seed, 5e-4, 0.5) for name in bakeoff.RECIPES[:-1] for seed in bakeoff.SEEDS]
    settings = dataclasses.asdict(bakeoff.open_results()["countdown"].settings)
    assert "no seed is finished" in " ".join(page.section({"countdown": (lines, settings)}))
    lines += [line(bakeoff.RECIPES[-1], 1, 5e-4, 0.5)]
    assert "Only 1 of 3 seeds are finished" in " ".join(page.section({"countdown": (lines, settings)}))


@pytest.mark.parametrize("world", ["arithmetic", "countdown"])
def test_the_results_in_the_repository_are_of_the_worlds_settings(world: str, bakeoff: ModuleType) -> None:
    results = bakeoff.open_results()[world]
    assert results.settings == type(results.settings)(**bakeoff.WORLDS[world])
    budget = results.settings.token_budget
    for one in results.lines():
        assert budget <= one["tokens"] < 1.3 * budget, "the last rollout may exceed the budget"
        assert one["success"] < 0.9, "the world stays hard"
    assert {one["arm"] for one in results.lines()} <= set(bakeoff.RECIPES) <= set(TRAINERS)
    assert len(set(bakeoff.RECIPES)) == 8


@pytest.mark.slow
@pytest.mark.parametrize("world", ["arithmetic", "countdown"])
def test_a_small_run_ends_at_its_budget_and_is_evaluated_there(
    world: str, bakeoff: ModuleType, learning: ModuleType, tmp_path: Path
) -> None:
    results = bakeoff.open_results(SMALL, {world: tmp_path / "results.jsonl"})[world]
    run = bakeoff.rate_runs(["gspo"])[0]
    learning.train(run, results, tmp_path / "out")
    (found,) = results.lines()
    read = read_run(tmp_path / "out" / run.folder)
    of_rollouts = [sum(entry.episode.policy_tokens for entry in read.episodes(step)) for step in read.steps]
    spent = [tokens for tokens in of_rollouts if tokens]
    assert sum(spent[:-1]) < SMALL["token_budget"] <= sum(spent) == found["tokens"]
    updates = TRAINERS.get("gspo").configure({"model": "m"}, {}).optim.minibatches
    assert found["steps"] == updates * len(spent), "every rollout was trained on to its end, with the recipe's options"
    assert [point["step"] for point in found["curve"]] == [0, found["steps"]]
    assert len(read.held_out(found["steps"])) == SMALL["bakeoff_problems"]
    assert read.config["optim"]["learning_rate"] == run.rate
    assert found["commit"]
    assert results.missing([run]) == []


@pytest.mark.proof
@pytest.mark.timeout(0)
def test_bakeoff(
    bakeoff: ModuleType,
    learning: ModuleType,
    learning_page: ModuleType,
    record_property: Callable[[str, object], None],
) -> None:
    """Makes what the files of results lack; killed, it goes on with the runs that are missing."""
    results = bakeoff.open_results()
    left = bakeoff.run_all(results, ROOT / "runs" / "bakeoff")
    told = {name: learning.Results(path, {}) for name, path in learning.RESULTS.items()}
    learning_page.write_page(learning.told_of(told), DOCS, learning.told_of(results))
    record_property("runs", sum(len(own.lines()) for own in results.values()))
    assert left == 0
