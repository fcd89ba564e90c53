"""A run that got worse says so, and one that was not evaluated claims no best step."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from rstar2_env.core.run_folder import RunWriter, read_run
from rstar2_env.core.run_folder.layout import VERDICT_FILE
from rstar2_env.trainers.base import TrainResult
from rstar2_env.trainers.record.verdict import REASONS, outcome, verdict_of
from rstar2_env.trainers.step.step_metrics import NO_SIGNAL


def figures(rate: float, error: float = 0.001) -> dict[str, float]:
    return {"pass_rate": rate, "pass_rate_se": error}


@pytest.mark.parametrize(
    ("before", "after", "best_step", "says"),
    [
        (
            0.2,
            0.5,
            8,
            "Better: the held-out pass rate went from 0.2000 to 0.5000; the best weights are those of",
        ),
        (
            0.5,
            0.2,
            4,
            "Worse: the held-out pass rate went from 0.5000 to 0.2000; the best weights are those of",
        ),
        (0.5, 0.2, 0, "so the best weights are the initial ones."),
        (0.5, 0.5, 0, "No change: "),
        (math.nan, 0.5, 4, "the held-out pass rate is unknown"),
    ],
)
def test_an_evaluated_run_says_how_it_went(before: float, after: float, best_step: int, says: str) -> None:
    assert says in outcome(figures(before), figures(after), best_step)


def test_a_change_that_may_be_chance_is_called_so() -> None:
    assert "two standard errors" in outcome(figures(0.5, 0.05), figures(0.4, 0.05), 0)
    assert "two standard errors" not in outcome(figures(0.5, 0.03), figures(0.4, 0.03), 0)


def test_a_run_without_evaluation_has_no_best_step() -> None:
    result = TrainResult(Path("run"), Path("run/final"), None, None, None, [])
    assert "it is unknown which step is the best" in result.outcome


HISTORY = [
    {"step": 1, "rollout/pass_rate": 0.25, "rollout/turns": 2.0, "loss": 0.5},
    {"step": 1, "eval/pass_rate": 0.3},
    {"step": 2, "rollout/pass_rate": 0.5, "rollout/turns": 1.5, "loss": 0.4},
]


def test_a_result_prints_as_a_short_table_without_its_history():
    result = TrainResult(Path("run"), Path("run/best"), {"pass_rate": 0.3}, {"pass_rate": 0.6}, 2, HISTORY * 50)
    lines = str(result).splitlines()
    assert lines[0] == "run: 100 steps"
    row = next(line for line in lines if line.strip().startswith("pass rate"))
    assert row.split()[2:] == ["30.0", "%", "60.0", "%", "25.0", "%", "50.0", "%"]
    assert result.outcome in lines
    assert len(lines) < 12
    assert repr(result) == "TrainResult(output_dir='run', model_dir='run/best', steps=100, best_step=2)"
    assert "60.0 %" in result._repr_html_()
    assert "run/best" in result._repr_html_()


def test_a_result_without_steps_prints_too():
    assert "0 steps" in str(TrainResult(Path("run"), Path("run/final"), None, None, None, []))


def test_a_result_plots_its_steps():
    pytest.importorskip("matplotlib")
    plot = TrainResult(Path("run"), Path("run/best"), None, None, None, HISTORY).plot()
    trained, held_out = plot.figure.axes[0].lines
    assert list(trained.get_xdata()) == [1, 2]
    assert list(held_out.get_ydata()) == [0.3]
    assert plot._repr_png_().startswith(b"\x89PNG")


def written(folder: Path, *lines: dict[str, float]) -> Path:
    """A run's folder with these lines of metrics, by step."""
    files = RunWriter(folder)
    files.begin({})
    for step, line in enumerate(lines, start=1):
        files.metrics(step, line)
    return folder


def test_the_reasons_are_those_that_steps_count() -> None:
    assert tuple(REASONS) == NO_SIGNAL


def test_a_verdict_counts_groups_and_steps(tmp_path: Path) -> None:
    lines = [
        {"groups/signal": 3.0, "groups/none_correct": 1.0, "tokens/trained": 90.0},
        {"groups/signal": 0.0, "groups/none_correct": 2.0, "groups/all_correct": 2.0, "tokens/trained": 0.0},
    ]
    verdict = verdict_of(written(tmp_path, *lines), "Better.", tmp_path / "best")
    assert (verdict.steps, verdict.updates, verdict.groups, verdict.signal) == (2, 1, 8, 3)
    assert verdict.without_signal == {"none_correct": 3, "all_correct": 2}
    assert verdict.sentences == [
        "3 of 8 groups (38 %) had a signal to learn from; 1 of 2 steps had nothing to train on.",
        "Groups without a signal: 3 with no correct episode, 2 with only correct episodes.",
        "Better.",
    ]
    assert verdict.commands == [
        f"rstar2 view {tmp_path}",
        f"rstar2 eval rstar2/MathTool-v0 --model {tmp_path / 'best'} -n 100",
    ]


@pytest.mark.parametrize(
    ("problems", "given"),
    [
        ({"problems": "arithmetic:level=2"}, "--problems arithmetic:level=2 -n 1000"),
        ({"problems": __file__, "holdout": 0.05}, f"--problems {__file__}:holdout=0.05"),
        ({"problems": f"{__file__}:like=aime24", "holdout": 0.05}, f"--problems {__file__}:like=aime24,holdout=0.05"),
        ({}, "--model STRONGER_MODEL -n 1000"),
    ],
)
def test_the_commands_of_a_run_that_learned_nothing_name_its_environment_and_its_model(
    problems: dict[str, object], given: str, tmp_path: Path
) -> None:
    options = {"max_turns": 3, **problems}
    files = RunWriter(tmp_path)
    files.begin({"model": {"path": "start"}, "rollout": {"env": "rstar2/MathFence-v0", "env_options": options}})
    files.metrics(5, {"groups/signal": 0.0, "groups/none_correct": 4.0})
    assert verdict_of(tmp_path, "", tmp_path / "best").commands == [
        f"rstar2 view --text {tmp_path}",
        f"rstar2 diagnose {tmp_path}",
        f"rstar2 traces --env rstar2/MathFence-v0 {given} --set env.max_turns=3 --out traces.jsonl",
        "rstar2 sft --traces traces.jsonl --model start --out cold-start",
    ]


def test_lines_of_several_steps_count_for_each_of_them(tmp_path: Path) -> None:
    files = RunWriter(tmp_path)
    files.begin({})
    for step in (5, 10):
        files.metrics(step, {"groups/signal": 1.5, "groups/all_correct": 0.5, "tokens/trained": 9.0})
    verdict = verdict_of(tmp_path, "", tmp_path)
    assert (verdict.steps, verdict.updates, verdict.groups, verdict.signal) == (10, 10, 20, 15)


def test_a_step_whose_change_is_below_the_rounding_of_the_weights_is_no_update(tmp_path: Path) -> None:
    step = {"groups/signal": 1.0, "tokens/trained": 9.0, "learning_rate": 1e-12}
    some = verdict_of(
        written(tmp_path / "some", {**step, "weights/change": 3e-12}, {**step, "weights/change": 2e-5}, step),
        "",
        tmp_path,
    )
    assert (some.steps, some.updates) == (3, 2)
    assert some.sentences[0].endswith("1 of 3 steps changed the weights by less than the rounding of float32.")
    none = verdict_of(
        written(tmp_path / "none", {**step, "weights/change": 0.0}, {**step, "weights/change": 3e-12}), "", tmp_path
    )
    assert none.updates == 0
    assert none.sentences[0] == (
        "Nothing was learned: the steps changed the weights by at most 3e-12 of their norm at a learning rate of "
        "1e-12, less than the rounding of float32 (6e-08): raise the learning rate (--lr)."
    )
    assert none.commands == [f"rstar2 view --text {tmp_path / 'none'}"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"groups/all_correct": 4.0}, "too easy"),
        ({"groups/unavailable": 4.0}, "could not be played"),
        ({"groups/not_selected": 4.0}, "check its options"),
        ({"groups/none_correct": 4.0}, "No episode of 4 of 4 groups was correct: cold-start the model on traces"),
        ({"groups/none_correct": 4.0, "rollout/end/tokens": 0.75}, "75 % of the episodes ended at the limit of tokens"),
        ({"groups/none_correct": 4.0, "rollout/end/turns": 0.6}, "60 % of the episodes ended at the limit of turns"),
        ({"groups/none_correct": 4.0, "rollout/broken_format": 1.0}, "the model does not know the format"),
    ],
)
def test_a_run_that_learned_nothing_says_why_and_what_to_do(line: dict[str, float], says: str, tmp_path: Path) -> None:
    verdict = verdict_of(written(tmp_path, {"groups/signal": 0.0, **line}), "", tmp_path)
    assert verdict.sentences[0].startswith("Nothing was learned: no group had a signal")
    assert says in " ".join(verdict.sentences)


@pytest.mark.train
def test_a_run_that_cannot_learn_ends_with_a_verdict_that_is_kept_and_shown(letter_options, tmp_path: Path) -> None:
    from rstar2_env import trainers
    from rstar2_env.view.answers import read_runs

    # Budgets of one token leave every episode without its answer.
    options = {**letter_options, "steps": 2, "max_episode_tokens": 1, "output_dir": str(tmp_path / "run")}
    trainer = trainers.make("grpo", **options, eval={"every": 2, "episodes": 4})
    try:
        result = trainer.train()
    finally:
        trainer.close()
    verdict = result.verdict
    assert (verdict.updates, verdict.signal) == (0, 0)
    assert verdict.sentences[0].startswith("Nothing was learned")
    assert verdict.before is not None
    assert verdict.before[1] < verdict.before[2], "Wilson's interval has a width"
    kept = json.loads((tmp_path / "run" / VERDICT_FILE).read_text())
    assert kept["sentences"] == list(verdict.sentences)
    assert verdict.sentences[0] in str(result)
    with read_runs([tmp_path / "run"], tmp_path / "cache") as answers:
        assert answers.run("run")["verdict"] == list(verdict.sentences)
    assert read_run(tmp_path / "run").finished
