"""The proof of learning: what it counts, that it goes on where it was killed, what its page says; the proof itself."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from places import DOCS, ROOT

from rstar2_env.core.episode import Episode
from rstar2_env.core.status import ToolStatus
from rstar2_env.trainers import TRAINERS


@pytest.fixture(scope="module")
def learning(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("learning")


@pytest.fixture(scope="module")
def page(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("learning_page")


SETTINGS = {"budget": 640, "problems": 8, "source": "arithmetic", "traces": 9, "sft_steps": 7}


def line(arm: str, seed: int, success: float, failing: float, length: float, counts: str = "trained") -> dict[str, Any]:
    last = {"success": success, "failing": failing, "length": length, "length_right": length}
    curve = [{"step": step, "episodes": 64 * step, **last} for step in (0, 5, 10)]
    found = {"arm": arm, "seed": seed, "faults": 0.0, "counts": counts, "curve": curve, "steps": 10, "cpu_seconds": 9}
    return {**found, **last, "most_success": success}


def test_failing_calls_are_those_of_correct_episodes_without_injected_faults_and_our_own_failures(
    learning: ModuleType,
) -> None:
    ok, bad, gone = ToolStatus.OK, ToolStatus.EXCEPTION, ToolStatus.UNAVAILABLE
    right = Episode(statuses=[bad, ok, gone], injected=[ToolStatus.TIMEOUT], correct=True, mask=[1] * 10)
    clean = Episode(statuses=[ok, ok], correct=True, mask=[1] * 6)
    wrong = Episode(statuses=[bad, bad], correct=False, mask=[1] * 20)
    lost = Episode(statuses=[bad], correct=True, mask=[1] * 90, end="unavailable")
    found = learning.figures([right, clean, wrong, lost])
    assert found == {"success": 2 / 3, "failing": 1 / 4, "length": 12, "length_right": 8}


def test_what_counts_is_the_mean_of_the_last_fifth_of_the_evaluations(learning: ModuleType) -> None:
    names = ("failing", "length", "length_right")
    curve = [{"step": step, "success": step / 10, **dict.fromkeys(names, step)} for step in range(11)]
    found = learning.final(curve)
    assert found["success"] == pytest.approx(0.95)
    assert found["failing"] == 9.5
    assert found["most_success"] == 1


def test_what_is_there_is_not_made_again_and_a_line_that_was_cut_is(learning: ModuleType, tmp_path: Path) -> None:
    results = learning.Results(tmp_path, learning.Settings(budget=64))
    first, second = learning.runs_of("compare", 1, ["grpo", "grpo_roc"], [0.0])
    with open(tmp_path / "results.jsonl", "w") as file:
        file.write(json.dumps(line("grpo", 0, 0.5, 0.1, 30)) + "\n" + '{"arm": "grpo_roc", "se')
    assert results.missing([first, second]) == [second]
    results.add(second, curve=[])
    assert results.missing([first, second]) == []
    assert learning.runs_of("curves", 1, ["grpo"])[0] not in [first, second], "the other budget is another run"
    with pytest.raises(SystemExit, match="other settings"):
        learning.Results(tmp_path, learning.Settings(budget=128))


def test_every_arm_and_recipe_of_the_proof_is_there(learning: ModuleType) -> None:
    for arm in learning.ARMS.values():
        TRAINERS.get(arm.recipe).configure({"model": "m"}, arm.options)
    assert len(learning.CURVES) >= 16
    assert set(learning.CURVES) <= set(TRAINERS)
    runs = learning.runs_of("compare", 5)
    assert len(runs) == len(set(runs)) == 5 * 2 * len(learning.ARMS)
    assert len(learning.runs_of("curves", 3)) == 3 * len(learning.CURVES)
    assert {run.seed for run in runs[: 2 * len(learning.ARMS)]} == {0}, "seed by seed"


def test_the_interval_is_students_of_the_paired_differences(page: ModuleType) -> None:
    middle, low, high = page.interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (middle, high - middle) == (3, pytest.approx(2.776 * math.sqrt(2.5) / math.sqrt(5)))
    assert low == pytest.approx(6 - high)
    assert page.interval([0.5]) == (0.5, -math.inf, math.inf)


def test_the_page_shows_every_seed_and_who_reaches_the_aim(page: ModuleType, tmp_path: Path) -> None:
    lines = [line("grpo", seed, 0.5 + seed / 100, 0.1, 30 + seed) for seed in range(3)]
    lines += [line("grpo_roc", seed, 0.5 + seed / 90, 0.015, 27 + seed) for seed in range(3)]
    lines += [line("grpo_roc_ties", seed, 0.3 + seed / 90, 0.001, 20) for seed in range(3)]
    rows = {row["arm"]: row for row in page.compared(lines, 0.0)}
    assert rows["grpo_roc"]["share"] == pytest.approx(0.15)
    assert rows["grpo_roc"]["apart"]["length_right"] == pytest.approx((-3, -3, -3))
    assert [page.holds(rows[arm]) for arm in ("grpo", "grpo_roc", "grpo_roc_ties")] == [False, True, False]
    lines += [line(arm, seed, 0.4, 0.1, 30, "played") for arm in ("grpo", "dapo") for seed in (0, 1)]
    lines[-1]["success"] = 0.2
    text = page.write_page(lines, SETTINGS, tmp_path).read_text()
    assert "| `grpo_roc` | 0.500, 0.0150, 27.0 | 0.511, 0.0150, 28.0 |" in text
    assert "shorter correct answers: `grpo_roc` reach that." in text.replace("\n", " ")
    assert "| `dapo` | 2 | 10 | 0.300 ± 0.141 |" in text
    assert "Less success than plain `grpo` on this budget: `dapo`." in text
    assert (tmp_path / "curves.png").stat().st_size > 10_000


@pytest.mark.slow
def test_a_small_proof_runs_and_one_that_was_killed_goes_on(
    learning: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = learning.Settings(budget=128, problems=4, traces=4, sft_steps=1)
    results = learning.Results(tmp_path / "out", settings)
    (run,) = learning.runs_of("curves", 1, ["grpo_roc"])
    with monkeypatch.context() as patch:
        patch.setattr(learning.Results, "add", lambda *given, **found: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            learning.train(run, results)
    assert results.missing([run]) == [run]
    learning.train(run, results)
    (found,) = results.lines()
    assert found["steps"] == 1, "grpo_roc plays twice as many as it trains on"
    assert [point["episodes"] for point in found["curve"]] == [0, 128]
    assert results.missing([run]) == []


@pytest.mark.proof
@pytest.mark.timeout(0)
@pytest.mark.parametrize("what", ["compare", "curves"])
def test_learning(
    what: str, learning: ModuleType, page: ModuleType, record_property: Callable[[str, object], None]
) -> None:
    """Takes hours; killed, it goes on with the runs that are missing in runs/learning."""
    results = learning.Results(ROOT / "runs" / "learning", learning.Settings())
    missing = learning.make_all(learning.runs_of(what, {"compare": 5, "curves": 3}[what]), results)
    page.write_page(results.lines(), json.loads((results.folder / "settings.json").read_text()), DOCS)
    record_property("runs", len(results.lines()))
    assert missing == []
    if what == "compare":
        for faults in (0.0, 0.1):
            rows = page.compared(results.lines(), faults)
            assert all(one["most_success"] < 0.9 for row in rows for one in row["seeds"].values()), "it stays hard"
            reached = [row["arm"] for row in rows if page.holds(row)]
            record_property(f"a fifth of the failing calls, faults {faults:g}", ", ".join(reached) or "none")
            assert reached
