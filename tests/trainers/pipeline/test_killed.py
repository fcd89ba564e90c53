"""``tiny_cpu``, killed by SIGKILL, ends with the same files as a run that nothing disturbed.

Compared are the outputs of every stage: weights byte by byte, files of problems and traces likewise, and of episodes
all but how long they took and in which order they ended.
"""

import pytest
from guesser import make_guesser, write_problems
from killed_pipeline import kill_when, settings_of, start, wait_killed

from rstar2_env.core.run_folder import read_run
from rstar2_env.trainers.pipeline.digests import Digests
from rstar2_env.trainers.pipeline.file import read_pipeline
from rstar2_env.trainers.pipeline.places import find_pipeline
from rstar2_env.trainers.pipeline.run import run_pipeline

pytest.importorskip("trl", reason="this trains: the extra 'train'")
pytestmark = pytest.mark.train
FILE = find_pipeline("tiny_cpu")
BOUND_S = 400.0


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guesser")
    return settings_of(make_guesser(folder / "model"), write_problems(folder / "problems.jsonl"))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, settings):
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    run_pipeline(read_pipeline(FILE, settings), folder, progress=False)
    return folder


def outputs(folder):
    """The digest of every output, from the files as they are."""
    digests = Digests(folder / "nothing")
    return {
        f"{event['stage']}.{name}": digest
        for event in read_run(folder).events
        if event["event"] == "stage_ended"
        for name, digest in event["outputs"].items()
    } | {str(path.relative_to(folder)): digests.of(path, "file") for path in folder.glob("stages/*/**/*.safetensors")}


def ended(folder):
    return [event["stage"] for event in read_run(folder).events if event["event"] == "stage_ended"]


def trained(folder):
    """Whether reinforcement learning changed the weights, without which equal weights say nothing."""
    weights = [folder / "stages" / name / "model.safetensors" for name in ("cold_start", "stage1/final")]
    return weights[0].read_bytes() != weights[1].read_bytes()


@pytest.mark.proof
def test_killed_at_a_boundary_and_in_the_middle_of_a_stage(tmp_path, settings, undisturbed):
    folder = tmp_path / "run"
    wait_killed(start(FILE, folder, settings, said="traces: done"), BOUND_S)
    assert ended(folder) == ["model", "data", "traces"]
    wait_killed(start(FILE, folder, settings, renamed="stages/stage1/checkpoint-2/complete.json"), BOUND_S)
    assert ended(folder)[-1] == "before"
    assert not (folder / "stages" / "stage1" / "final").exists()

    said = []
    run_pipeline(read_pipeline(FILE, settings), folder, progress=False, say=said.append)
    assert any(line.endswith("stage1: resumed.") for line in said)
    assert [one["step"] for one in read_run(folder / "stages" / "stage1").events if one["event"] == "resumed"] == [2]
    assert ended(folder) == ended(undisturbed)
    assert outputs(folder) == outputs(undisturbed)
    assert trained(folder)
    assert read_run(folder).finished


def is_in_the_middle(stage):
    """Whether a stage has begun, and has something to lose."""
    lines = [stage / "traces.jsonl", stage / "episodes" / "eval-000000.jsonl"]
    if any(file.exists() and file.read_bytes().count(b"\n") >= 2 for file in lines):
        return True
    if (stage / "checkpoint-1" / "complete.json").exists():
        return True
    return stage.name in ("model", "data") and stage.exists()


@pytest.mark.proof
@pytest.mark.timeout(3600)
def test_killed_at_every_boundary_and_in_the_middle_of_each_stage(tmp_path, settings, undisturbed, record_property):
    folder, boundaries, middles = tmp_path / "run", 0, 0
    for stage in ended(undisturbed):
        process = start(FILE, folder, settings)
        middles += kill_when(process, lambda at=folder / "stages" / stage: is_in_the_middle(at), BOUND_S)
        wait_killed(start(FILE, folder, settings, said=f"{stage}: done"), BOUND_S)
        assert ended(folder)[-1] == stage
        boundaries += 1
    run_pipeline(read_pipeline(FILE, settings), folder, progress=False)
    record_property("stages killed in the middle", middles)
    record_property("killed at a boundary", boundaries)
    assert middles == boundaries == len(ended(undisturbed))
    assert ended(folder) == ended(undisturbed)
    assert outputs(folder) == outputs(undisturbed)
    assert trained(folder)
