"""The proof of learning: what it counts, that it goes on where it was killed, what its page says; the proof itself."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from places import DOCS, ROOT

from rstar2_env.core.episode import Episode
from rstar2_env.core.run_folder.entries import Decision, EpisodeEntry
from rstar2_env.core.status import ToolStatus
from rstar2_env.core.turn import Turn
from rstar2_env.trainers import TRAINERS


@pytest.fixture(scope="module")
def learning(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("learning")


@pytest.fixture(scope="module")
def page(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("learning_page")


@pytest.fixture(scope="module")
def bakeoff(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("bakeoff")


@pytest.fixture(scope="module")
def compare(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("learning_compare")


@pytest.fixture(scope="module")
def cause(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("learning_cause")


SETTINGS: dict[str, Any] = {"budget": 640, "problems": 8, "source": "arithmetic", "traces": 9, "sft_steps": 7}


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


def test_traces_without_a_failing_call_make_their_call_twice(learning: ModuleType) -> None:
    said = ("user", "assistant", "user", "assistant", "user", "assistant")
    failing = [{"role": role, "content": str(number)} for number, role in enumerate(said)]
    clean = failing[:1] + failing[3:]
    kept = learning.twice({"call_mistake": "misspelt", "messages": list(failing)})["messages"]
    doubled = learning.twice({"call_mistake": None, "messages": list(clean)})["messages"]
    assert kept == failing
    assert [message["content"] for message in doubled] == ["0", "3", "4", "3", "4", "5"]


def test_what_counts_is_the_mean_of_the_last_fifth_of_the_evaluations(learning: ModuleType) -> None:
    names = ("failing", "length", "length_right")
    curve = [{"step": step, "success": step / 10, **dict.fromkeys(names, step)} for step in range(11)]
    found = learning.final(curve)
    assert found["success"] == pytest.approx(0.95)
    assert found["failing"] == 9.5
    assert found["most_success"] == 1


def test_of_the_evaluations_of_a_comparison_the_two_that_count_are_made(learning: ModuleType) -> None:
    settings = learning.Settings()
    compared, drawn = (learning.runs_of(what, 1, ["grpo_clip_higher"])[0] for what in ("compare", "curves"))
    assert learning.evaluated_every(compared, 40, settings) == 36, "and after the last step, as always"
    assert learning.evaluated_every(drawn, 20, settings) == 5
    assert learning.evaluated_every(compared, 1, settings) == 1
    names = ("success", "failing", "length", "length_right")
    made = [{"step": step, **dict.fromkeys(names, step)} for step in (0, 36, 40)]
    assert learning.final(made)["success"] == 38


def test_what_a_run_trained_on_is_counted(cause: ModuleType) -> None:
    ok, bad, gone = ToolStatus.OK, ToolStatus.EXCEPTION, ToolStatus.UNAVAILABLE

    def entry(statuses: list[ToolStatus], *, correct: bool, kept: bool) -> EpisodeEntry:
        turns = [Turn(start=0, stop=1, statuses=[status]) for status in statuses]
        episode = Episode(statuses=statuses, correct=correct, reward=float(correct), steps=turns)
        return EpisodeEntry(episode, 1, decision=Decision(kept=kept))

    group = [
        entry([bad, ok], correct=True, kept=True),
        entry([ok, gone], correct=True, kept=True),
        entry([bad, ok], correct=True, kept=False),
        entry([bad, bad], correct=False, kept=True),
        entry([ok], correct=False, kept=True),
        entry([ok], correct=False, kept=False),
    ]
    found = cause.of_group(group, penalty=-1)
    high = 0.5 / (math.sqrt(1 / 3) + 1e-4)
    assert (found["right"], found["right_failing"]) == (3, 2)
    assert (found["kept_right"], found["kept_right_failing"], found["forced"]) == (2, 1, 1)
    assert (found["kept_wrong"], found["kept_wrong_failing"]) == (2, 1)
    assert (found["failed"], found["failed_advantage"]) == (3, pytest.approx(high - 2 * high - 3))
    assert (found["ran"], found["ran_advantage"]) == (3, pytest.approx(2 * high - high))
    idle = cause.of_group([entry([bad], correct=True, kept=False)] * 2, penalty=0)
    assert (idle["rejected"], idle["forced"], idle["failed"]) == (1, 0, 0)

    class Read:
        def groups(self, step: int) -> list[list[EpisodeEntry]]:
            return [group] * step

    quarters = cause.causes(Read(), 8)
    assert [one["groups"] for one in quarters] == [1 + 2, 3 + 4, 5 + 6, 7 + 8]


def test_what_is_there_is_not_made_again_and_a_line_that_was_cut_is(learning: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    results = learning.Results(path, {"budget": 64})
    first, second = learning.runs_of("compare", 1, ["grpo_clip_higher", "grpo_roc"], [0.0])
    with open(path, "a") as file:
        file.write(json.dumps(line("grpo_clip_higher", 0, 0.5, 0.1, 30)) + "\n" + '{"arm": "grpo_roc", "se')
    assert results.missing([first, second]) == [second]
    results.add(second, curve=[])
    assert results.missing([first, second]) == []
    assert learning.runs_of("curves", 1, ["grpo_clip_higher"])[0] not in [first, second], (
        "the other budget is another run"
    )
    assert {"command", "commit", "load"} <= json.loads(path.read_text().splitlines()[0]).keys()
    assert {"commit", "load"} <= json.loads(path.read_text().splitlines()[-1]).keys(), "those of this run"
    again = learning.Results(path, {})
    assert all({"commit", "load"} <= line.keys() for line in again.lines())
    assert (again.settings, again.missing([first, second])) == (learning.Settings(budget=64), [])
    with pytest.raises(SystemExit, match=r"other settings \(\{'budget': 64\}\)"):
        learning.Results(path, {"budget": 128, "traces": learning.Settings().traces})


def test_every_arm_and_recipe_of_the_proof_is_there(learning: ModuleType) -> None:
    for arm in learning.ARMS.values():
        TRAINERS.get(arm.recipe).configure({"model": "m"}, arm.options)
    for name in learning.CURVES:
        arm = learning.arm_of(name)
        TRAINERS.get(arm.recipe).configure({"model": "m"}, arm.options)
    earlier = TRAINERS.get("clip_cov").configure({"model": "m"}, learning.arm_of("clip_cov").options)
    assert earlier.parts.selector.options["reject_equal"] is False
    assert earlier.parts.loss[0].options["high"] == 0.2
    assert len(learning.CURVES) >= 16
    assert set(learning.CURVES) <= set(TRAINERS)
    runs = learning.runs_of("compare", 5)
    assert len(runs) == len(set(runs)) == 5 * 2 * len(learning.ARMS)
    assert len(learning.runs_of("curves", 3)) == 3 * len(learning.CURVES)
    assert {run.seed for run in runs[: 2 * len(learning.ARMS)]} == {0}, "seed by seed"


def test_the_interval_is_students_of_the_paired_differences(compare: ModuleType) -> None:
    middle, low, high = compare.interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (middle, high - middle) == (3, pytest.approx(2.776 * math.sqrt(2.5) / math.sqrt(5)))
    assert low == pytest.approx(6 - high)
    assert compare.interval([0.5]) == (0.5, -math.inf, math.inf)


def test_the_page_shows_every_seed_and_who_reaches_the_aim(
    learning: ModuleType, page: ModuleType, compare: ModuleType, tmp_path: Path
) -> None:
    lines = [line("grpo_clip_higher", seed, 0.5 + seed / 100, 0.1, 30 + seed) for seed in range(3)]
    lines += [line("grpo_roc", seed, 0.5 + seed / 90, 0.015, 27 + seed) for seed in range(3)]
    lines += [line("grpo_roc_ties", seed, 0.3 + seed / 90, 0.001, 20) for seed in range(3)]
    rows = {row["arm"]: row for row in compare.compared(lines, 0.0)}
    assert rows["grpo_roc"]["share"] == pytest.approx(0.15)
    assert rows["grpo_roc"]["apart"]["length_right"] == pytest.approx((-3, -3, -3))
    assert [compare.holds(rows[arm]) for arm in ("grpo_clip_higher", "grpo_roc", "grpo_roc_ties")] == [
        False,
        True,
        False,
    ]
    lines += [line(arm, seed, 0.4, 0.1, 30, "played") for arm in ("grpo_clip_higher", "dapo") for seed in (0, 1)]
    lines[-1]["success"] = 0.2
    settings = dataclasses.asdict(learning.Settings(**SETTINGS))
    text = page.write_page({"indifferent": (lines, settings)}, tmp_path).read_text()
    assert "| `grpo_roc` | 0.500, 0.0150, 27.0 | 0.511, 0.0150, 28.0 |" in text
    assert "shorter correct answers; this aim is reached by `grpo_roc`." in text.replace("\n", " ")
    assert "| `dapo` | 2 | 10 | 0.300 ± 0.141 |" in text
    assert "less success than plain `grpo_clip_higher` after the same number of episodes: `dapo`." in text
    assert "without a run in this world: `grpo_roc`, `grpo_roc_clean`" in text
    assert "only one evaluation" in text, "these lines have evaluations after steps 5 and 10 of 10"
    for one in lines:
        one["curve"] = [*one["curve"][:-1], {**one["curve"][-1], "step": 9}, one["curve"][-1]]
    assert "only one evaluation" not in page.write_page({"indifferent": (lines, settings)}, tmp_path).read_text()
    assert all(
        (tmp_path / "pictures" / f"curves-indifferent-{one}.png").stat().st_size > 10_000 for one in ("light", "dark")
    )


def test_the_page_in_the_documentation_is_that_of_the_results_in_the_repository(
    learning: ModuleType, page: ModuleType, bakeoff: ModuleType
) -> None:
    text = page.page_text(told(learning), learning.told_of(bakeoff.open_results()))
    assert (DOCS / "learning.md").read_text() == text, "run `python benchmarks/learning.py page`"


def test_the_file_of_results_that_pages_quote_is_that_of_the_runs(learning: ModuleType, compare: ModuleType) -> None:
    lines = told(learning)["indifferent"][0]
    found = json.loads((DOCS / "data" / "learning.json").read_text())
    assert found == compare.short_results(lines), "run `python benchmarks/learning.py page`"
    assert {arm for world in found["figures"].values() for arm in world} == {compare.BASE, *compare.SHORT}


def test_the_short_table_tells_means_and_intervals_against_plain_grpo(compare: ModuleType) -> None:
    lines = [line("grpo_clip_higher", seed, 0.5 + seed / 100, 0.1, 30) for seed in range(3)]
    lines += [line(arm, seed, 0.6 + seed / 100, 0.02 + seed / 100, 29) for arm in compare.SHORT for seed in range(3)]
    text = compare.short_table(lines, SETTINGS)
    assert "3 seeds, on 8 held-out problems" in text
    assert "| no injected faults | `grpo_clip_higher` | `grpo_roc` | `grpo_roc_clean` |\n" in text
    assert "| success (higher is better) | 0.510 | 0.610 | 0.610 |" in text
    assert "|  | -0.070 (-0.095 to -0.045) |" in text


def test_the_short_table_of_the_page_is_what_make_compare_prints(
    learning: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert learning.main(["table"]) == 0
    table = capsys.readouterr().out
    assert table in (DOCS / "learning.md").read_text(), "run `python benchmarks/learning.py page`"
    command = ["make", "--no-print-directory", "--dry-run", "compare"]  # told apart: make may run these tests
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].endswith("python benchmarks/learning.py table")


@pytest.mark.parametrize("faults", [0.0, 0.1])
def test_what_the_page_says_of_the_paper_s_selector_is_what_was_counted(learning: ModuleType, faults: float) -> None:
    lines = learning.Results(learning.RESULTS["indifferent"], {}).lines()
    held = [one for one in lines if (one["arm"], one["faults"], one["counts"]) == ("grpo_roc", faults, "trained")]
    assert [one["seed"] for one in held] == [0, 1, 2, 3, 4]
    for one in held:
        assert [point["step"] for point in one["curve"]] == [0, 36, 40]
        assert one["failing"] == pytest.approx(sum(point["failing"] for point in one["curve"][1:]) / 2, abs=1e-4)
    at = [sum(one["curve"][number]["failing"] for one in held) for number in range(3)]
    assert at[0] > at[1] > at[2], "the share still falls at the end"
    first, last = ([one["causes"][number] for one in held] for number in (0, -1))
    assert sum(one["forced"] for one in first) > 0.5 * sum(one["kept_right_failing"] for one in first)
    assert sum(one["kept_right_failing"] for one in last) < sum(one["kept_right_failing"] for one in first)
    assert sum(one["failed"] for one in last) < sum(one["failed"] for one in first)


def told(learning: ModuleType) -> dict[str, Any]:
    """What the files of the repository say, by world."""
    return dict(learning.told_of({name: learning.Results(path, {}) for name, path in learning.RESULTS.items()}))


@pytest.mark.parametrize("world", ["indifferent", "teaching"])
def test_the_results_in_the_repository_are_of_the_worlds_settings(learning: ModuleType, world: str) -> None:
    settings = learning.Results(learning.RESULTS[world], {}).settings
    assert settings == learning.Settings(**learning.WORLDS[world])


@pytest.mark.slow
@pytest.mark.parametrize("what", ["curves", "compare"])
def test_a_small_proof_runs_and_one_that_was_killed_goes_on(
    what: str, learning: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"budget": 64, "curve_budget": 128, "problems": 4, "curve_problems": 4, "traces": 4, "sft_steps": 1}
    results = learning.Results(tmp_path / "results.jsonl", asked)
    (run,) = learning.runs_of(what, 1, ["grpo_roc"], [0.0])
    with monkeypatch.context() as patch:
        patch.setattr(learning.Results, "add", lambda *given, **found: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            learning.train(run, results, tmp_path / "out")
    assert results.missing([run]) == [run]
    learning.train(run, results, tmp_path / "out")
    (found,) = results.lines()
    assert found["steps"] == 1, "grpo_roc plays twice as many as it trains on"
    assert [point["episodes"] for point in found["curve"]] == [0, 128]
    assert sum(one["groups"] for one in found.get("causes", [])) == (8 if what == "compare" else 0)
    assert results.missing([run]) == []


@pytest.mark.proof
@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    ("what", "world"), [("compare", "indifferent"), ("curves", "indifferent"), ("curves", "teaching")]
)
def test_learning(
    what: str,
    world: str,
    learning: ModuleType,
    page: ModuleType,
    bakeoff: ModuleType,
    compare: ModuleType,
    record_property: Callable[[str, object], None],
) -> None:
    """Makes what the file of results lacks; killed, it goes on with the runs that are missing."""
    results = learning.Results(learning.RESULTS[world], learning.WORLDS[world])
    runs = learning.runs_of(what, {"compare": 5, "curves": 3}[what])
    missing = learning.make_all(runs, results, ROOT / "runs" / "learning" / world)
    page.write_page(told(learning), DOCS, learning.told_of(bakeoff.open_results()))
    record_property("runs", len(results.lines()))
    assert missing == []
    if what == "compare":
        for faults in (0.0, 0.1):
            rows = compare.compared(results.lines(), faults)
            assert all(one["most_success"] < 0.9 for row in rows for one in row["seeds"].values()), "it stays hard"
            reached = [row["arm"] for row in rows if compare.holds(row)]
            record_property(
                f"aim of learning.md reached with {100 * faults:g} % injected faults", ", ".join(reached) or "none"
            )
            assert reached
