"""What of a training run that was killed is gone on with."""

import json

import pytest

from rstar2_env.trainers.pipeline.resuming import newest_unfinished
from rstar2_env.trainers.record.checkpoints import mark_whole, whole_checkpoints


@pytest.fixture
def folder(tmp_path):
    """A run of six steps with checkpoints after the second, fourth and sixth, and one that was not written whole."""
    for step in (2, 4, 6, 5):
        checkpoint = tmp_path / f"checkpoint-{step}"
        checkpoint.mkdir()
        (checkpoint / "trainer_state.json").write_text(json.dumps({"max_steps": 6}))
        if step != 5:
            mark_whole(checkpoint, 1)
    return tmp_path


def test_the_newest_checkpoint_with_steps_to_take_is_gone_on_with_and_later_ones_are_removed(folder):
    assert newest_unfinished(folder) == folder / "checkpoint-4"
    assert [path.name for path in whole_checkpoints(folder)] == ["checkpoint-2", "checkpoint-4"]
    assert not (folder / "checkpoint-6").exists()


def test_a_run_that_was_to_end_before_has_its_own_last_step(folder):
    assert newest_unfinished(folder, ended_at=lambda step: step >= 4) == folder / "checkpoint-2"
    assert newest_unfinished(folder, ended_at=lambda step: True) is None


def test_a_checkpoint_that_does_not_say_how_many_steps_there_are_is_gone_on_with(folder):
    (folder / "checkpoint-6" / "trainer_state.json").unlink()
    assert newest_unfinished(folder) == folder / "checkpoint-6"
