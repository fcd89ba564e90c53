"""Two runs: whether their curves part, since when, and which of their differences can explain it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from cli_runner import run
from made_runs import MadeRun, write_training

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.diagnosis.compare import compare_runs


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory):
    """A function that makes a run of 24 steps, once for each name."""
    folder = tmp_path_factory.mktemp("runs")

    def make(name: str, **changes: object) -> Path:
        if not (folder / name).exists():
            sizes = {"steps": 24, "eval_every": 24, "problems_per_step": 8, "checkpoint_every": 0}
            write_training(folder / name, MadeRun(**{**sizes, **changes}))  # type: ignore[arg-type]
        return folder / name

    return make


def test_the_only_difference_that_acts_when_the_curves_part_explains_them(made) -> None:
    found = compare_runs(made("learns"), made("still", slope=-4.0, options={"learning_rate": 5e-6}))
    assert {one.figure for one in found.curves} >= {"rollout/pass_rate"}
    assert [one.name for one in found.differences] == ["optim.learning_rate"]
    assert "Only one recorded difference can be the cause: optim.learning_rate." in found.sentences


def test_the_same_run_twice_has_no_curve_that_differs(made) -> None:
    found = compare_runs(made("learns"), made("learns"))
    assert (found.curves, found.differences) == ([], [])
    assert "do not differ by more than chance" in found.sentences[0]


def test_runs_that_differ_by_their_seeds_alone_differ_by_chance(made) -> None:
    found = compare_runs(made("learns"), made("seeded", seed=7, slope=-4.0))
    assert [(one.kind, one.acts) for one in found.differences] == [("seed", "chance")]
    assert any("the difference is chance" in sentence for sentence in found.sentences)


def test_what_acts_on_updates_cannot_explain_a_difference_before_the_first(made) -> None:
    options = {"learning_rate": 5e-6, "temperature": 0.5}
    other = made("other", slope=-4.0, problems=400, options=options)
    learns = made("many", problems=400)
    for rate, folder in enumerate((learns, other)):
        file = folder / "episodes" / "eval-000000.jsonl.gz"
        lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
        text = "".join(json.dumps({**line, "correct": bool(rate)}) + "\n" for line in lines)
        file.write_bytes(gzip.compress(text.encode()))
    found = compare_runs(learns, other)
    assert [one.name for one in found.differences] == ["rollout.temperature", "optim.learning_rate"]
    assert "Only one recorded difference can be the cause: rollout.temperature." in found.sentences


def test_runs_without_a_common_step_are_refused(tmp_path: Path) -> None:
    for name, step in (("a", 1), ("b", 9)):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"step": step, "loss": 0.1}) + "\n")
    with pytest.raises(ConfigurationError, match="do not have a step in common"):
        compare_runs(tmp_path / "a.jsonl", tmp_path / "b.jsonl")


def test_the_command_takes_two_runs_with_compare_and_one_without(made) -> None:
    learns = made("paced", options={"learning_rate": 1e-6})
    still = made("still", slope=-4.0, options={"learning_rate": 5e-6})
    shown = run("diagnose", "--compare", learns, still)
    assert shown.exit_code == 0
    assert "optim.learning_rate: 1e-06 and 5e-06 (has an effect from the first" in " ".join(shown.output.split())
    assert json.loads(run("diagnose", "--compare", learns, still, "--json").stdout)["second"] == str(still)
    for words in (("diagnose", learns, still), ("diagnose", "--compare", learns)):
        assert run(*words).exit_code == 2
