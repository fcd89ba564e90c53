"""The experiment with a pretrained model: what it counts, compares and concludes, and that slices go on."""

from __future__ import annotations

import argparse
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
from rstar2_env.problems import load_problems


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


def test_a_cold_start_of_all_seeds_is_compared_with_each_of_them(table: ModuleType) -> None:
    ours = [{**line("cold_start", 50, 0), "settings": {"start": "model"}}]
    theirs = [line("grpo", 50 + 20 * seed, 0, seed=seed) for seed in (0, 1, 2)]
    (said, *_) = table.comparisons({"cold_start": ours, "grpo": theirs})
    assert said.startswith("- grpo - cold_start: success 0.100 (")


def test_a_policy_with_one_finished_seed_is_compared_with_this_seed_alone(table: ModuleType) -> None:
    ours = [line("grpo", 50 + 20 * seed, 0, seed=seed) for seed in (0, 1, 2)]
    (said, *_) = table.comparisons({"grpo": ours, "grpo_roc": [line("grpo_roc", 60, 0, seed=0)]})
    assert said.startswith("- grpo_roc - grpo: success 0.050 (")


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


def test_the_file_for_documents_has_policies_comparisons_and_the_sentences_that_changed_most(table: ModuleType) -> None:
    made = {"settings": {"model": "m", "group_size": 8}, "commit": "c0ffee", "load": 1.5, "seconds": 1800}
    results = [{**line("cold_start", 50, 100), **made}, {**line("grpo_roc", 60, 20), **made, "load": 2.0}]
    results += [{**line("no_tool", 0, 0), **made}]  # its sentences say nothing about reinforcement learning
    sentences = {f"p{number:03}": ["all", "changed" if 40 <= number < 60 else "unchanged"] for number in range(200)}
    found = table.data_of(results, sentences)
    assert found["figures"]["grpo_roc"] == {"right": 0.3, "failed": 0.02, "failed_right": 0.02}
    assert found["figures"]["grpo_roc_less_cold_start"]["right"] == pytest.approx(0.05)
    assert found["figures"]["hours"] == 1.5
    assert found["tables"]["policies"][2][2].startswith("0.300 (")
    head, *rows = found["tables"]["sentences"]
    assert head == ["sentence", "problems", "`cold_start`", "`grpo_roc`"]
    assert rows[:2] == [["changed", "20", "0.50", "1.00"], ["all", "200", "0.25", "0.30"]]
    assert found["figures"]["without_first_sentence"] == {
        "cold_start": pytest.approx(40 / 180),
        "grpo_roc": pytest.approx(40 / 180),
    }
    assert found["commit"] == "c0ffee"
    assert "1.5 to 2.0" in found["load"]
    assert (
        "experiment --world w --model m --group-size 8 --seeds 1 --only cold_start+grpo_roc+no_tool;"
        in found["command"]
    )
    with pytest.raises(SystemExit, match="found 2 groups"):
        table.data_of([*results, {**results[0], "settings": {}}], {})


def test_a_policy_without_calls_has_no_share_of_failed_calls(table: ModuleType) -> None:
    made = {"commit": "c0ffee", "load": 1.5, "seconds": 1800}
    without = {**line("no_tool", 50, 0), **made, "calls": {"all": {}, "correct": {}}}
    found = table.data_of([{**line("cold_start", 50, 100), **made}, without], {})
    assert found["figures"]["no_tool"] == {"right": 0.25}
    assert found["tables"]["policies"][2][3:5] == ["–", "–"]
    assert "NaN" not in json.dumps(found)


def test_results_of_other_settings_have_a_table_of_their_own(table: ModuleType) -> None:
    few, many = ({**line("grpo", right, 0), "settings": {"steps": right}} for right in (50, 100))
    first, second = table.table_of([few, many]).split("### w")[1:]
    assert "| grpo | 1 | 0.250 (" in first
    assert "steps 50" in first
    assert "| grpo | 1 | 0.500 (" in second


def asked(tmp_path: Path, experiment: ModuleType, *words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    experiment.add_arguments(parser)
    return parser.parse_args(["--model", "m", "--out", str(tmp_path), *words])


def test_a_policy_has_another_folder_when_a_setting_changes_on_which_it_depends(
    experiment: ModuleType, tmp_path: Path
) -> None:
    def folders(*words: str) -> list[Path]:
        given = asked(tmp_path, experiment, *words)
        return [experiment._folder(given, name, 0) for name in ("base", "cold_start", "grpo")]

    base, start, trained = folders()
    assert folders("--samples", "4") == [base, start, trained]
    assert folders("--steps", "7")[:2] == [base, start]
    assert folders("--steps", "7")[2] != trained
    assert folders("--traces", "7")[1] != start
    assert folders("--traces", "7")[2] != trained


def test_every_seed_is_tested_on_the_first_problems_of_the_split(experiment: ModuleType, tmp_path: Path) -> None:
    found = experiment.held_out_problems(asked(tmp_path, experiment, "--problems", "5"))
    source = load_problems("word_arithmetic:split=test")
    assert [one["question"] for one in found] == [source[at].question for at in range(5)]


def test_a_result_is_added_behind_a_line_that_was_cut(
    experiment: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text(json.dumps({"a": 1}) + "\n" + '{"b": ')
    monkeypatch.setattr(experiment, "_evaluate", lambda *given: {"episodes": 3})
    given = asked(tmp_path, experiment, "--results", str(file))
    for _ in range(2):
        experiment._one(given, "base", 0)
    first, second, third = experiment.read_results(file)
    assert first == {"a": 1}
    assert second["episodes"] == third["episodes"] == 3
    assert second.keys() >= {"seconds", "commit", "load", "command"}


def test_a_policy_that_fails_stops_those_alone_that_continue_from_it(
    experiment: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []

    def part(words: list[str], seconds: float) -> int:
        made.append(words[-2])
        return 5 if words[-2] == "cold_start" else 0

    monkeypatch.setattr(experiment, "_in_time", part)
    assert experiment.run(asked(tmp_path, experiment, "--only", "base+grpo+no_tool", "--seeds", "2")) == 5
    assert made == ["base", "cold_start", "no_tool_start", "no_tool", "cold_start", "no_tool_start", "no_tool"]
    assert "cold_start of seed 1 failed" in capsys.readouterr().out
