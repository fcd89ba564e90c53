"""A run that is killed after any sequence of stages, at any point of one, neither redoes nor skips any."""

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from letter_stages import CHAIN, DEAD, ORDER, begun, diary, letters, live, run, written

from rstar2_env.core.run_folder import read_run
from rstar2_env.trainers.pipeline.run import run_pipeline

POINTS = ("begin", "middle", "end", "after")
PLACES = st.tuples(st.sampled_from(ORDER), st.sampled_from(POINTS))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    run(written(folder, CHAIN), folder / "run")
    return letters(folder / "run")


@settings(max_examples=30, deadline=None)
@given(lives=st.lists(PLACES, max_size=5))
def test_no_stage_is_redone_and_none_is_skipped(lives, undisturbed):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pipeline = written(folder, CHAIN)
        deaths = Counter()
        for place in lives:
            code = live(pipeline, folder / "run", place)
            assert code in (0, DEAD)  # 0: that place lies behind it
            deaths[place] += code == DEAD
        assert live(pipeline, folder / "run") == 0

        # Each began once, in the order of the file; what was killed in the middle went on.
        assert begun(diary(folder / "run")) == list(ORDER)
        in_a_stage = Counter(
            stage for (stage, point), times in deaths.items() if point != "after" for _ in range(times)
        )
        went_on = Counter(line.removesuffix(" resumed") for line in diary(folder / "run") if line.endswith("resumed"))
        assert went_on == in_a_stage

        ended = [event["stage"] for event in read_run(folder / "run").events if event["event"] == "stage_ended"]
        assert ended == list(ORDER)
        assert letters(folder / "run") == undisturbed
        assert read_run(folder / "run").finished


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A pipeline, the folder of its run, which has ended, and a copy of that folder."""
    folder = tmp_path_factory.mktemp("ended")
    pipeline = written(folder, CHAIN)
    run(pipeline, folder / "run")
    return pipeline, folder / "run", shutil.copytree(folder / "run", folder / "copy")


@given(cut=st.integers(0, 4000))
@settings(max_examples=20, deadline=None)
def test_events_that_break_off_anywhere_are_gone_on_with(cut, undisturbed, ended):
    # What a machine that loses its power may leave of the last write.
    pipeline, folder, copy = ended
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)
    events = folder / "events.jsonl"
    data = events.read_bytes()
    events.write_bytes(data[: cut * len(data) // 4000])
    run_pipeline(pipeline, folder, progress=False)
    assert letters(folder) == undisturbed
    stages = [event["stage"] for event in read_run(folder).events if event["event"] == "stage_ended"]
    assert stages == list(ORDER)
