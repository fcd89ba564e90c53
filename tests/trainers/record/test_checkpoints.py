"""Only a checkpoint that was written to the end is resumed from, and none is deleted before a newer one is whole."""

import pytest

from rstar2_env.trainers.record.checkpoints import (
    drop_old,
    mark_unfinished,
    mark_whole,
    newest_checkpoint,
    step_of,
    whole_checkpoints,
)


@pytest.fixture
def checkpoint(tmp_path):
    def make(step, whole=True):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        (folder / "weights").write_text("1")
        if whole:
            mark_whole(folder, 1)
        return folder

    return make


def test_the_newest_is_the_one_of_the_highest_step_that_is_whole(checkpoint, tmp_path):
    for step in (9, 10, 2):
        checkpoint(step)
    checkpoint(11, whole=False)
    (tmp_path / "checkpoint-final").mkdir()
    assert [step_of(path) for path in whole_checkpoints(tmp_path)] == [2, 9, 10]
    assert newest_checkpoint(tmp_path).name == "checkpoint-10"


def test_a_run_without_a_whole_checkpoint_has_none(checkpoint, tmp_path):
    assert newest_checkpoint(tmp_path / "nowhere") is None
    checkpoint(3, whole=False)
    assert newest_checkpoint(tmp_path) is None


def test_a_checkpoint_that_is_written_again_is_not_whole_until_it_is_done(checkpoint, tmp_path):
    folder = checkpoint(4)
    mark_unfinished(folder)
    assert newest_checkpoint(tmp_path) is None


def test_old_checkpoints_go_and_what_is_newer_than_the_newest_whole_one_stays(checkpoint, tmp_path):
    for step in (1, 3, 4):
        checkpoint(step)
    checkpoint(2, whole=False)
    checkpoint(5, whole=False)
    drop_old(tmp_path, keep=2)
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint-3", "checkpoint-4", "checkpoint-5"}


def test_nothing_is_deleted_while_no_checkpoint_is_whole(checkpoint, tmp_path):
    checkpoint(1, whole=False)
    drop_old(tmp_path, keep=1)
    assert (tmp_path / "checkpoint-1").exists()


def test_a_folder_that_is_no_checkpoint_has_no_step(tmp_path):
    with pytest.raises(ValueError, match="not the folder of a checkpoint"):
        step_of(tmp_path)
