"""The experiment with a pretrained model: what it counts, compares and concludes, and that slices go on."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rstar2_env.core.episode import Episode, Message
from rstar2_env.core.status import ToolStatus


@pytest.fixture(scope="module")
def experiment(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("real_model_experiment")


@pytest.fixture(scope="module")
def table(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("real_model_table")


def line(
    policy: str, right: int, failing: int, *, seed: int = 0, problems: int = 200, calls: int = 1000
) -> dict[str, Any]:
    """A result in which ``right`` problems are always solved, and so many of the calls of correct episodes fail."""
    by = {f"p{number:03}": [8 if number < right else 0, 8] for number in range(problems)}
    counts = {"ok": calls - failing, "exception": failing}
    found = {"world": "w", "policy": policy, "seed": seed, "problems": by, "used_code": 8 * problems}
    return {**found, "episodes": 8 * problems, "calls": {"all": counts, "correct": counts}, "tokens": 50.0}


def test_a_result_counts_calls_of_all_and_of_correct_episodes_without_unavailable_ones(experiment: ModuleType) -> None:
    ok, bad, gone = ToolStatus.OK, ToolStatus.EXCEPTION, ToolStatus.UNAVAILABLE
    episodes = [
        Episode(problem_id="a", statuses=[bad, ok, gone], correct=True, mask=[1] * 10),
        Episode(problem_id="a", statuses=[bad], mask=[1] * 20),
        Episode(problem_id="b", mask=[1] * 30),
        Episode(problem_id="b", statuses=[ok], correct=True, mask=[1] * 99, end="unavailable"),
    ]
    assert experiment.figures(episodes) == {
        "problems": {"a": [1, 2], "b": [0, 1]},
        "used_code": 2,
        "episodes": 3,
        "calls": {"all": {"exception": 2, "ok": 1}, "correct": {"exception": 1, "ok": 1}},
        "tokens": 20.0,
    }


@pytest.mark.parametrize(
    ("grpo", "roc", "said"),
    [
        ((100, 200), (101, 60), "yes"),
        ((100, 200), (101, 190), "no"),
        ((100, 40), (101, 0), "undecided (GRPO's share is 0.040"),
        ((100, 200), (60, 60), "undecided"),
    ],
)
def test_the_verdict_needs_a_world_with_failing_calls_half_of_them_gone_and_no_success_lost(
    table: ModuleType, grpo: tuple[int, int], roc: tuple[int, int], said: str
) -> None:
    found = table.verdict({"grpo": [line("grpo", *grpo)], "grpo_roc": [line("grpo_roc", *roc)]})
    assert found.startswith(said)


def test_policies_are_paired_by_problem_and_seed(table: ModuleType) -> None:
    ours = [line("cold_start", 50, 0, seed=seed) for seed in (0, 1)]
    theirs = [line("grpo", 70, 0, seed=seed) for seed in (1, 2)]
    (said, *_) = table.comparisons({"cold_start": ours, "grpo": theirs})
    assert said.startswith("- grpo - cold_start: success 0.100 (")


def test_the_table_has_every_policy_with_its_intervals_and_statuses(table: ModuleType) -> None:
    shown = table.table_of([line("base", 0, 0, calls=4), line("grpo", 100, 200)])
    (base,) = (row for row in shown.splitlines() if row.startswith("| base |"))
    assert base.split(" | ")[2] == "0.000 (0.000 to 0.019)"
    (grpo,) = (row for row in shown.splitlines() if row.startswith("| grpo |"))
    assert "0.200 (0.176 to 0.226) (exception 200)" in grpo


def test_pass_at_k_rises_with_the_samples(table: ModuleType) -> None:
    half = {**line("base", 0, 0), "problems": {f"p{number}": [4, 8] for number in range(20)}}
    assert table.pass_at([half], 1).value == pytest.approx(0.5)
    assert table.pass_at([half], 4).value == pytest.approx(1 - 1 / 70)


def test_a_picture_is_drawn(table: ModuleType, tmp_path: Path) -> None:
    table.plot([line("base", 0, 0), line("grpo", 100, 200)], tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_what_a_policy_continues_from_is_made_first(experiment: ModuleType) -> None:
    assert experiment.needed(["no_tool", "grpo"]) == ["cold_start", "grpo", "no_tool_start", "no_tool"]
    with pytest.raises(SystemExit, match="no policy 'grop'"):
        experiment.needed(["grop"])


def test_a_trace_without_a_tool_keeps_the_question_and_the_answer(experiment: ModuleType) -> None:
    turns = [("system", "s"), ("user", "1+1?"), ("assistant", "call"), ("user", "2"), ("assistant", "\\boxed{2}")]
    made = experiment.without_tool({"messages": [Message(*turn).record() for turn in turns], "reward": 1.0})
    assert [message["role"] for message in made["messages"]] == ["system", "user", "assistant"]
    assert made["messages"][1:] == [Message(*turns[1]).record(), Message(*turns[4]).record()]


def test_a_slice_that_is_over_asks_its_part_to_stop(experiment: ModuleType, tmp_path: Path) -> None:
    code = f"""
import time
try:
    open({str(tmp_path / "began")!r}, "w").close()
    time.sleep(600)
except KeyboardInterrupt:
    open({str(tmp_path / "stopped")!r}, "w").close()
"""
    began = time.monotonic()
    assert experiment._in_time([sys.executable, "-c", code], 15) is None
    assert (tmp_path / "began").exists()
    assert (tmp_path / "stopped").exists()
    assert time.monotonic() - began < 300
    assert experiment._in_time([sys.executable, "-c", "raise SystemExit(7)"], 300) == 7


def test_a_cut_line_of_results_is_left_out(experiment: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text(json.dumps({"a": 1}) + "\n" + '{"b": ')
    assert experiment.read_results(file) == [{"a": 1}]
