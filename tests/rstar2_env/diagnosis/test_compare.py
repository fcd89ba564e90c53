"""Two runs: whether their curves part, since when, and which of their differences can explain it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from cli_runner import run
from made_runs import MadeRun, write_training

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import RunWriter
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


def test_a_file_that_the_options_name_and_that_has_changed_is_a_difference(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = {"rollout": {"env": "./env.py:make", "env_options": {"problems": "sums.jsonl:holdout=0.1"}}}
    Path("sums.jsonl").write_text("{}")
    for name, level in (("a", 0.2), ("b", 0.8)):
        Path("env.py").write_text(f"# {level}")
        writer = RunWriter(name)
        writer.begin(config)
        for step in range(1, 16):
            writer.metrics(step, {"rollout/reward": level + 0.01 * (step % 3)})
    found = compare_runs("a", "b")
    assert [(one.kind, one.name, one.acts) for one in found.differences] == [("file", "content of ./env.py", "start")]
    assert "Only one recorded difference can be the cause: content of ./env.py." in found.sentences
    began, *rest = Path("b/events.jsonl").read_text().splitlines(keepends=True)
    earlier = {key: value for key, value in json.loads(began).items() if key != "files"}
    Path("b/events.jsonl").write_text(json.dumps(earlier) + "\n" + "".join(rest))
    older = compare_runs("a", "b")
    assert older.differences == []
    assert older.sentences[-1].startswith("Not recorded by b: the content of ./env.py, sums.jsonl;")


def test_the_content_of_a_file_acts_like_the_first_option_that_names_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path("mine.py").write_text(f"# {name}")
        writer = RunWriter(name)
        writer.begin({"parts": {"advantage": {"name": "./mine.py:Mine"}}})
        writer.metrics(1, {"rollout/reward": 0.5})
    assert [(one.name, one.acts) for one in compare_runs("a", "b").differences] == [("content of ./mine.py", "updates")]
