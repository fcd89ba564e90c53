"""The time left: by what stages of a kind took for their work, else by what was computed, and never guessed."""

import pytest

from rstar2_env.core.run_folder import RunWriter
from rstar2_env.trainers.pipeline.cost import Cost
from rstar2_env.trainers.pipeline.progress import PipelineProgress, TimedStep, left

DONE = TimedStep("stage1", "train", Cost(episodes=90, rows=10), measured=50.0)
SAME = TimedStep("stage2", "train", Cost(episodes=180, rows=20, seconds=7.0))
OTHER = TimedStep("after", "evaluate", Cost(episodes=5, seconds=30.0))
NOBODY = TimedStep("data", "data", Cost())


def test_a_stage_takes_what_its_kind_took_for_its_work():
    assert left([DONE, SAME]) == (100.0, [])


def test_before_one_of_its_kind_has_ended_what_was_computed_counts():
    assert left([SAME, OTHER]) == (37.0, [])


def test_what_nobody_knows_is_named_and_not_guessed():
    assert left([DONE, SAME, NOBODY]) == (100.0, ["data"])


@pytest.mark.parametrize(("share", "spent", "expected"), [(0.25, 10.0, 30.0), (0.5, 40.0, 40.0), (0.0, 10.0, 90.0)])
def test_of_the_stage_that_runs_its_own_speed_counts_once_it_has_one(share, spent, expected):
    assert left([DONE, SAME], "stage2", share, spent) == (expected, [])


def test_a_stage_that_went_on_is_judged_by_what_was_done_since():
    said = []
    progress = PipelineProgress({one.id: one for one in (DONE, SAME)}, said.append)
    progress.report(60, 100)
    line, share = progress.line("stage2", None, first=0.5, spent=20.0)
    assert share == 0.6
    # A fifth of what was left took 20 seconds.
    assert line == "stage2: 60 of 100; 80 s left for all stages."


def test_the_steps_of_a_training_run_are_read_from_its_folder(tmp_path):
    files = RunWriter(tmp_path)
    files.begin({})
    files.metrics(3, {"loss": 1.0})
    task = TimedStep("stage1", "train", Cost(steps=12))
    line, share = PipelineProgress({"stage1": task}, print).line("stage1", tmp_path, first=0.0, spent=6.0)
    assert (line, share) == ("stage1: 3 of 12; 18 s left for all stages.", 0.25)
