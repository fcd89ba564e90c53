"""A ``train`` stage takes the optimizer that another left; the run itself is ``backends/trl/test_carried``."""

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.pipeline.file import read_pipeline
from rstar2_env.trainers.pipeline.places import find_pipeline
from rstar2_env.trainers.pipeline.plan import PipelinePlan


def made(folder, settings=None):
    """Every stage of ``tiny_cpu``, by name."""
    plan = PipelinePlan(read_pipeline(find_pipeline("tiny_cpu"), settings), folder)
    plan.check()
    return plan.made


def test_the_run_of_the_second_stage_begins_from_that_of_the_first(tmp_path):
    stages = made(tmp_path / "run")
    begins = {name: stages[name].stage._configured[1].optim.begin_from for name in ("stage1", "stage2", "stage3")}
    assert begins == {"stage1": None, "stage2": str(tmp_path / "run" / "stages" / "stage1"), "stage3": None}


def test_where_the_earlier_run_lies_does_not_count(tmp_path):
    resolved = [made(tmp_path / name)["stage2"].stage.resolved() for name in "ab"]
    assert resolved[0] == resolved[1]
    # But a run that the options name, which no stage left, does.
    named = made(tmp_path / "a", {"stage3": {"options": {"optim": {"begin_from": "earlier"}}}})["stage3"].stage
    assert named.resolved()["optim"]["begin_from"] == "earlier"


def test_only_an_optimizer_is_taken_as_one(tmp_path):
    with pytest.raises(ConfigurationError, match=r"kind optimizer, but stage1\.model is of the kind model"):
        made(tmp_path / "run", {"stage2": {"optimizer": "stage1.model"}})
    with pytest.raises(ConfigurationError, match=r"the stage 'cold_start' does not have the output 'optimizer'"):
        made(tmp_path / "run", {"stage2": {"optimizer": "cold_start.optimizer"}})
