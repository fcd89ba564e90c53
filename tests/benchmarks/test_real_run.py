"""The results of a run on a pretrained model are those of its folder, and the picture is drawn from the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from made_runs import MadeRun, write_evaluation, write_training
from PIL import Image
from places import DOCS

from rstar2_env.core.run_folder import read_run


@pytest.fixture(scope="module")
def real_run(benchmark_named: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_named("real_run")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder with the stages that the program reads."""
    stages = tmp_path / "stages"
    for stage, right in (("before", 0.0), ("after_start", 1.0), ("after", 2.0)):
        write_evaluation(stages / stage, samples=1, right=right)
    for stage, steps in (("train", 10), ("cold_start", 6)):
        write_training(stages / stage, MadeRun(steps=steps, eval_every=5))
    (stages / "traces").mkdir()
    (stages / "traces" / "traces.jsonl").write_text("{}\n" * 7)
    (tmp_path / "pipeline.json").write_text('{"seed": 3}')
    events = [
        {"event": "started", "versions": {"torch": "2"}},
        {"event": "stage_ended", "stage": "train", "seconds": 600.0},
        {"event": "stage_replaced", "stage": "train"},
        {"event": "stage_ended", "stage": "train", "seconds": 120.0},
        {"event": "stage_ended", "stage": "after", "seconds": 30.0},
    ]
    (tmp_path / "events.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events))
    return tmp_path


def test_the_results_are_those_of_the_stages(real_run: ModuleType, run: Path) -> None:
    told = real_run.results(run, "abc", "quiet")
    figures = told["figures"]
    assert {name: told[name] for name in ("commit", "load", "seed", "versions")} == {
        "commit": "abc",
        "load": "quiet",
        "seed": 3,
        "versions": {"torch": "2"},
    }
    for stage, right in told["right"].items():
        assert figures[stage]["right"] == pytest.approx(right.count("1") / len(right), abs=1e-5)
        assert figures[stage]["low"] <= figures[stage]["right"] <= figures[stage]["high"]
    gain = figures["gain"]
    assert gain["low"] <= gain["right"] <= gain["high"]
    assert gain["right"] == pytest.approx(figures["after"]["right"] - figures["after_start"]["right"], abs=0.05), (
        "episodes that the machine lost are in neither"
    )
    rates = [entry["rollout/pass_rate"] for entry in read_run(run / "stages" / "train").metrics() if entry["step"]]
    assert told["steps"] == rates
    assert figures["train"] == pytest.approx({"steps": 10, "first": sum(rates[:4]) / 4, "last": sum(rates[-4:]) / 4})
    peaks = [entry.get("memory/peak_gib", 0.0) for entry in read_run(run / "stages" / "cold_start").metrics()]
    assert figures["cold_start"] == pytest.approx({"traces": 7, "steps": 6, "peak_gib": max(peaks)})
    before, after = (told["episodes"][stage] for stage in ("before", "after"))
    assert before[0] == after[0]
    assert before[0]["role"] == "user"
    assert {message["role"] for message in after} > {"user"}
    assert figures["minutes"] == {"train": 2.0, "after": 0.5, "all": 2.5}


def test_the_picture_shows_the_file_of_results(real_run: ModuleType, tmp_path: Path) -> None:
    told = json.loads(real_run.DATA.read_text("utf-8"))
    real_run.draw(told, tmp_path / "drawn.png")
    for file in (tmp_path / "drawn.png", real_run.PICTURE):
        with Image.open(file) as picture:
            assert picture.text["Source"] == real_run.drawn_from(told), "run `python benchmarks/real_run.py page`"
            assert picture.size == (896, 434)


def test_the_page_is_that_of_the_file_of_results(real_run: ModuleType) -> None:
    told = json.loads(real_run.DATA.read_text("utf-8"))
    text = real_run.page(told)
    assert (DOCS / real_run.PAGE).read_text("utf-8") == text, "run `python benchmarks/real_run.py page`"
    assert f"{told['figures']['after']['right']:.2f} (" in text
    assert told["episodes"]["after"][0]["content"] in text
