"""Every preset runs whole, scaled down: the same stages in the same order, two steps each, with a tiny model."""

from __future__ import annotations

from pathlib import Path

import pytest
from guesser import make_guesser, write_problems
from preset_runs import PRESETS, STEPS, scaled

from rstar2_env.core.files.config_file import read_mapping
from rstar2_env.core.run_folder import read_run
from rstar2_env.problems import load_problems

pytest.importorskip("trl", reason="this trains: the extra 'train'")
pytestmark = pytest.mark.slow


IN_CI = ("qwen3_0.6b_1gpu", "rstar2_14b_paper", "smollm2_cpu")
"""The others have the stages of one of these, with other numbers."""


@pytest.mark.parametrize(
    "preset", [pytest.param(name, marks=[] if name in IN_CI else [pytest.mark.proof]) for name in PRESETS]
)
def test_it_runs_whole(preset: str, tmp_path: Path) -> None:
    from rstar2_env.trainers.pipeline.file import read_pipeline
    from rstar2_env.trainers.pipeline.run import run_pipeline

    problems = write_problems(tmp_path / "problems.jsonl", 12)
    file = scaled(PRESETS[preset], tmp_path, make_guesser(tmp_path / "guesser"), problems)
    pipeline, folder = read_pipeline(file), tmp_path / "run"
    run = run_pipeline(pipeline, folder, progress=False)
    assert list(run.states) == list(read_mapping(PRESETS[preset])["stages"])
    assert all(state.ended for state in run.states.values())
    for spec in pipeline.stages():
        state, place = run.states[spec.name], folder / "stages" / spec.name
        if spec.kind == "train":
            assert state.figures["steps"] == STEPS
            assert sum("loss" in line for line in read_run(place).metrics()) == STEPS
        elif spec.kind == "evaluate":
            assert 0 <= state.figures["pass_rate"] <= 1
        elif spec.kind == "prepare":
            train = list(load_problems(place / "train.jsonl"))
            assert len(train) == state.figures["train"] > 0
            assert all("is 0 mod 4" not in problem.question for problem in train) or "against" not in spec.options
    said: list[str] = []
    run_pipeline(pipeline, folder, progress=False, say=said.append)
    assert all("is up to date" in line for line in said)
