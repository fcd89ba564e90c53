"""A stage that starts servers plays on all of them, and leaves none behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from chain import free_port
from guesser import ENV_OPTIONS, make_guesser, write_problems
from killed_pipeline import start
from served import answered, make_sayer, played, processes_with, serve_options, servers_of, write_filter
from vllm_serve import needs_vllm
from waiting import wait_for

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.core.run_folder import read_run
from rstar2_env.trainers.launch.running import LaunchError
from rstar2_env.trainers.pipeline.base import Work
from rstar2_env.trainers.pipeline.file import read_pipeline
from rstar2_env.trainers.pipeline.plan import PipelinePlan
from rstar2_env.trainers.pipeline.run import PipelineRun, look_at, run_pipeline
from rstar2_env.trainers.pipeline.serve import Serve
from rstar2_env.trainers.pipeline.stages.evaluate import Evaluate

pytest.importorskip("httpx", reason="servers need the extra 'remote'")
pytestmark = pytest.mark.slow

COUNT = 24 * 4
BOUND_S = 240.0


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sayer(tmp_path_factory.mktemp("sayer") / "model")


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_problems(tmp_path_factory.mktemp("problems") / "problems.jsonl")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, model: Path, problems: Path) -> tuple[Path, list[str]]:
    """The folder of a run on two servers, and what it said."""
    folder, said = tmp_path_factory.mktemp("undisturbed"), list[str]()
    file = write_filter(folder, model, problems, serve=serve_options())
    run_pipeline(read_pipeline(file), folder / "run", progress=False, say=said.append)
    return folder / "run", said


@pytest.fixture
def runner(tmp_path: Path, model: Path, problems: Path) -> Iterator[subprocess.Popen[str]]:
    """A run in a process of its own, in the middle of its stage."""
    file = write_filter(tmp_path, model, problems, serve=serve_options())
    process = start(file, tmp_path / "run", {})
    try:
        wait_for(lambda: process.poll() is not None or len(played(tmp_path / "run")) >= 3, BOUND_S)
        assert process.poll() is None, process.communicate()[1]
        assert len(servers_of(model)) == 2
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_stage_plays_on_every_server_and_ends_them(undisturbed: tuple[Path, list[str]], model: Path) -> None:
    folder, said = undisturbed
    assert sum("is ready after" in line for line in said) == 2
    assert sorted(played(folder)) == list(range(COUNT))
    assert min(answered(folder)) > COUNT // 4
    assert servers_of(model) == []
    # As without servers: where it is played is no part of what is played.
    assert read_run(folder / "stages" / "hard").config["engine"] == "vllm"


def test_servers_do_not_count_in_what_is_up_to_date(
    undisturbed: tuple[Path, list[str]], tmp_path: Path, model: Path, problems: Path
) -> None:
    folder, _ = undisturbed

    def states(**options: Any) -> list[tuple[str, str]]:
        pipeline = read_pipeline(write_filter(tmp_path, model, problems, **options))
        return [(one.state, one.why) for one in look_at(PipelineRun(PipelinePlan(pipeline, folder)))]

    for serve in (None, "0-7", {"devices": "0-7", "tensor_parallel": 2, "nodes": 8}):
        assert states(serve=serve) == [("done", "")]
    assert states(serve="0-7", engine_options={"max_model_len": 100})[0][0] == "again"


def test_ctrl_c_ends_the_servers_and_a_second_run_goes_on_with_others(
    runner: subprocess.Popen[str], tmp_path: Path, model: Path, undisturbed: tuple[Path, list[str]]
) -> None:
    runner.send_signal(signal.SIGINT)
    runner.communicate(timeout=BOUND_S)
    assert servers_of(model) == []
    assert read_run(tmp_path / "run").events[-1]["event"] == "interrupted"
    goes_on(tmp_path, undisturbed[0])


def test_servers_end_with_a_runner_that_is_killed_and_a_second_run_goes_on_with_others(
    runner: subprocess.Popen[str], tmp_path: Path, model: Path, undisturbed: tuple[Path, list[str]]
) -> None:
    runner.kill()
    runner.communicate(timeout=BOUND_S)
    wait_for(lambda: servers_of(model) == [])
    goes_on(tmp_path, undisturbed[0])


def goes_on(folder: Path, undisturbed: Path) -> None:
    """Run again, and compare with a run that nothing disturbed."""
    before, said = set(played(folder / "run")), list[str]()
    assert 0 < len(before) < COUNT
    run_pipeline(read_pipeline(folder / "pipeline.json"), folder / "run", progress=False, say=said.append)
    assert any(line.endswith("hard: resumed.") for line in said)
    assert sum("is ready after" in line for line in said) == 2
    assert played(folder / "run") == played(undisturbed)
    lines = (folder / "run" / "stages" / "hard" / "problems.jsonl").read_text()
    assert lines == (undisturbed / "stages" / "hard" / "problems.jsonl").read_text()


def evaluation(model: Path, problems: Path, **serve: Any) -> Evaluate:
    """A stage that plays on two servers, or on those that are named."""
    return Evaluate(
        model=str(model),
        problems=str(problems),
        n=4,
        engine="vllm",
        env_options=ENV_OPTIONS,
        model_options={"max_in_flight": 2},
        serve=Serve(**serve_options(**serve)),
    )


def test_a_stage_that_fails_ends_its_servers(tmp_path: Path, model: Path, problems: Path) -> None:
    with (tmp_path / "lock").open("w") as lock:

        def report(done: int, total: int) -> None:
            servers = servers_of(model)
            assert len(servers) == 2
            # While one of them lives, no other runner works in the folder.
            assert all(os.path.samefile(f"/proc/{one}/fd/{lock.fileno()}", lock.name) for one in servers)
            raise OSError("the disk is full")

        with pytest.raises(OSError, match="the disk is full"):
            evaluation(model, problems).run(Work(tmp_path / "stage", report=report, inherited=(lock.fileno(),)))
    assert servers_of(model) == []


def test_a_server_that_dies_is_started_again_and_no_episode_is_lost(
    tmp_path: Path, model: Path, problems: Path
) -> None:
    said, killed = list[str](), list[int]()

    def report(done: int, total: int) -> None:
        if not killed:
            killed.append(min(servers_of(model)))
            os.kill(killed[0], signal.SIGKILL)

    stage = replace(evaluation(model, problems), engine="vllm-server", engine_options={"retries": 6})
    figures = stage.run(Work(tmp_path / "stage", report=report, say=said.append))
    assert sum("ended with exit code -9; restarting it" in line for line in said) == 1
    assert (figures["episodes"], figures["unavailable"]) == (COUNT, 0)
    assert servers_of(model) == []


def test_a_stage_fails_once_no_server_is_left(tmp_path: Path, model: Path, problems: Path) -> None:
    def report(done: int, total: int) -> None:
        for server in servers_of(model):
            os.kill(server, signal.SIGKILL)

    said = list[str]()
    stage = evaluation(model, problems, restarts=0, start_timeout_s=5.0)
    ended = r"ended with exit code -9 and is not restarted again, because it was already started 1 times"
    with pytest.raises(LaunchError, match=rf"server-0 {ended}(.|\n)*server-1 {ended}"):
        stage.run(Work(tmp_path / "stage", report=report, say=said.append))
    assert sum("because it was already started 1 times" in line for line in said) == 2


def test_a_server_that_does_not_start_is_the_stages_error(tmp_path: Path, model: Path, problems: Path) -> None:
    with pytest.raises(
        LaunchError, match=r"server-0 ended with exit code 1 before it was ready:(.|\n)*can't find '__main__'"
    ):
        evaluation(model, problems, server_program=f"{sys.executable} {tmp_path}").run(Work(tmp_path / "stage"))


def test_an_adapter_is_refused_before_a_server_starts(tmp_path: Path, problems: Path) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(ConfigurationError, match=r"is a LoRA adapter.*rstar2 export .* --merge"):
        evaluation(tmp_path, problems).run(Work(tmp_path / "stage"))
    assert not (tmp_path / "stage.launched").exists()


STAND_INS = {
    "scontrol": "printf '%s\\n' 127.0.0.1 127.0.0.2\n",
    # Ends what it started, as Slurm ends the tasks of a step whose srun is told to end; its own variables come later.
    "srun": 'echo "$@" >> $(dirname $0)/steps; while [[ $1 == --* ]]; do shift; done; CUDA_VISIBLE_DEVICES=9 exec $@\n',
}


def test_every_machine_of_a_slurm_job_serves(
    tmp_path: Path, model: Path, problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, body in STAND_INS.items():
        (tmp_path / name).write_text(f"#!/usr/bin/env bash\n{body}")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    said = list[str]()
    stage = evaluation(model, problems, devices="3", nodes=2, host="{node}")
    with pytest.raises(ConfigurationError, match="Slurm job"):
        stage.run(Work(tmp_path / "stage"))
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    assert isinstance(stage.serve, Serve)
    port = stage.serve.port

    def report(done: int, total: int) -> None:
        with pytest.raises(HTTPError, match="401"):  # without the key
            urlopen(f"http://127.0.0.2:{port}/v1/models", timeout=10)

    figures = stage.run(Work(tmp_path / "stage", say=said.append, report=report))
    assert figures["episodes"] == COUNT
    for node in ("127.0.0.1", "127.0.0.2"):
        assert any(f"on device 3 of {node}: http://{node}:{port}" in line for line in said)
    steps = sorted((tmp_path / "steps").read_text().splitlines())
    assert [step.split(" env ")[0] for step in steps] == [
        f"--overlap --nodes=1 --ntasks=1 --nodelist={node}" for node in ("127.0.0.1", "127.0.0.2")
    ]
    # Each sees its device; developers' calls are not open to other machines, and what is has a key.
    assert all("CUDA_VISIBLE_DEVICES=3" in step and "DEV_MODE" not in step for step in steps)
    assert "VLLM_API_KEY" not in os.environ
    assert servers_of(model) == []
    with pytest.raises(ConfigurationError, match=r"nodes is 3, but .* has 2 machines \(127.0.0.1 127.0.0.2\)"):
        replace(stage, serve=replace(stage.serve, nodes=3)).run(Work(tmp_path / "other"))


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_with_two_real_vllm_servers(
    tmp_path: Path, problems: Path, record_property: Callable[[str, object], None]
) -> None:
    needs_vllm()
    model = make_guesser(tmp_path / "model", hidden=64)
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))
    options = {"enforce_eager": True, "kv_cache_gib": 0.0625, "max_model_len": 4096}
    serve = {"devices": cores, "cpu": True, "port": free_port()}
    file = write_filter(tmp_path, model, problems, engine_options=options, serve=serve)
    process = start(file, tmp_path / "run", {})
    try:
        wait_for(lambda: process.poll() is not None or len(played(tmp_path / "run")) >= 3, 900)
        assert process.poll() is None, process.communicate()[1]
        assert len(processes_with("vllm", str(model))) >= 2
    finally:
        process.kill()
        process.communicate()
    wait_for(lambda: processes_with(str(model)) == [] and processes_with("VLLM::") == [], 120)
    run_pipeline(read_pipeline(file), tmp_path / "run", progress=False)
    episodes = [entry.episode for entry in read_run(tmp_path / "run" / "stages" / "hard").held_out()]
    assert len(episodes) == COUNT
    assert all(one.available for one in episodes)
    assert processes_with(str(model)) == []
    record_property("servers", cores)
