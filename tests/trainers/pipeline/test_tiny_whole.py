"""``tiny_cpu`` as it stands, at its own size and through the command line: all stages, and what the model has learned.

The short form beside it is ``test_killed``, which runs the same file with fewer problems and steps. docs/proof.md has
the seconds and the pass rates.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rstar2_env.core.run_folder import read_run
from rstar2_env.trainers.pipeline.file import read_pipeline
from rstar2_env.trainers.pipeline.places import find_pipeline
from rstar2_env.trainers.pipeline.state import states_of

pytest.importorskip("trl", reason="this trains: the extra 'train'")
pytestmark = pytest.mark.train
BOUND_S = 3000.0
GAIN = 0.1
"""By how much three stages of training raise the pass rate, at least: nearly two standard errors of the difference."""


@pytest.mark.proof
@pytest.mark.timeout(3600)
def test_the_whole_recipe_in_miniature_teaches(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "rstar2_env.cli", "run", "tiny_cpu", "-o", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND_S, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    run = read_run(folder)
    assert run.finished
    states = states_of(run.events)
    assert list(states) == [spec.name for spec in read_pipeline(find_pipeline("tiny_cpu")).stages()]
    assert all(state.ended for state in states.values())
    stages = ("stage1", "stage2", "stage3")
    record_property("seconds of all stages", round(sum(state.seconds for state in states.values())))
    record_property("of the cold start", round(states["cold_start"].seconds))
    record_property("of training", round(sum(states[name].seconds for name in stages)))
    figures = {name: states[name].figures for name in ("before", "after")}
    for figure in ("pass_rate", "tool_error_share"):
        for name, found in figures.items():
            record_property(f"{figure} {name}", round(found[figure], 3))
    assert figures["after"]["pass_rate"] > figures["before"]["pass_rate"] + GAIN
    assert figures["after"]["tool_error_share"] < figures["before"]["tool_error_share"]
    again = subprocess.run(command, capture_output=True, text=True, timeout=BOUND_S, check=False)
    said = again.stdout + again.stderr
    assert again.returncode == 0, said[-3000:]
    assert said.count("up to date") == len(states)
    assert states_of(read_run(folder).events) == states
