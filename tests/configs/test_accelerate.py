"""accelerate reads every file of configs/accelerate, takes from it what the file's name says, and launches a run."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from chain import free_port
from guesser import ENV_OPTIONS, make_guesser, write_problems
from places import ROOT

from rstar2_env.core.run_folder import read_run

FILES = sorted((ROOT / "configs" / "accelerate").glob("*.yaml"))
ENV = {"env.holdout": 0.25, "env.dialect_options": ENV_OPTIONS["dialect_options"]}

config_args = pytest.importorskip("accelerate.commands.config.config_args", reason="this is about accelerate")


def test_there_is_one_for_each_machine_and_size() -> None:
    expected = {
        f"{gpu}_{machines}x8_{kind}"
        for gpu in ("mi300x", "mi355x")
        for machines in (1, 8)
        for kind in ("fsdp2", "deepspeed")
    }
    assert {path.stem for path in FILES} == expected


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_accelerate_reads_it(path: Path) -> None:
    config = config_args.load_config_from_file(str(path))
    machines = int(path.stem.split("_")[1].removesuffix("x8"))
    assert (config.num_machines, config.num_processes) == (machines, 8 * machines)
    assert config.mixed_precision == "bf16"
    if path.stem.endswith("fsdp2"):
        from accelerate.utils import DistributedType

        assert config.distributed_type == DistributedType.FSDP
        assert config.fsdp_config["fsdp_version"] == 2
        # As this package applies it, whatever the file says.
        assert config.fsdp_config["fsdp_reshard_after_forward"] is True
    else:
        assert config.deepspeed_config["zero_stage"] == 2


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_option_of_fsdp_and_deepspeed_is_one_that_accelerate_launch_takes(path: Path) -> None:
    from accelerate.commands.launch import launch_command_parser

    config = config_args.load_config_from_file(str(path))
    known = {action.dest for action in launch_command_parser()._actions}
    given = {*config.fsdp_config, *(config.deepspeed_config or {})}
    assert given - known - {"fsdp_version"} == set()
    assert path.stem in path.read_text().splitlines()[1], "the comment names the file"


IN_CI = ("mi300x_1x8_fsdp2",)
"""The other FSDP2 files differ from it in the number of machines and processes. test_sharded_trainer.py trains with
ZeRO-2 and ZeRO-3 in CI."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=[] if path.stem in IN_CI else [pytest.mark.proof]) for path in FILES],
)
def test_two_processes_on_a_cpu_train_with_it(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="this trains: the extra 'train'")
    if path.stem.endswith("deepspeed"):
        pytest.importorskip("deepspeed", reason="this shards with DeepSpeed: the extra 'deepspeed'")
    compiled = tmp_path / "compiled"
    scaled = {**ENV, "steps": 2, "problems_per_step": 2, "group_size": 4, "threads": 1, "progress": False}
    own = ["--model", make_guesser(tmp_path / "model"), "--problems", write_problems(tmp_path / "problems.jsonl")]
    # transformers takes bfloat16 on a CPU only where it is told to use the CPU, and accelerate then no DeepSpeed.
    smaller = ("--mixed_precision", "no")
    smaller += ("--num_machines", "1", "--machine_rank", "0", "--main_process_ip", "127.0.0.1", "--num_processes", "2")
    words = [
        *("accelerate.commands.launch", "--config_file", path, *smaller, "--main_process_port", free_port()),
        *("--num_cpu_threads_per_process", "1", "--module", "rstar2_env.cli"),
        *("train", "grpo_roc", *own, "--out", tmp_path / "run"),
        *(word for name, value in scaled.items() for word in ("--set", f"{name}={json.dumps(value)}")),
    ]
    launcher = subprocess.Popen(
        [sys.executable, "-m", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "TORCH_EXTENSIONS_DIR": str(compiled)},
        start_new_session=True,
    )
    try:
        said, _ = launcher.communicate(timeout=800)
    finally:
        # The launcher's children are in its session: none may outlive the test.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(launcher.pid, signal.SIGKILL)
    assert launcher.returncode == 0, said[-3000:]
    assert not list(compiled.rglob("*")), "what DeepSpeed compiles takes minutes"
    run = read_run(tmp_path / "run")
    assert run.finished
    assert [line["step"] for line in run.metrics() if "loss" in line] == [1, 2]
