"""accelerate reads every file of configs/accelerate, and takes from it what the file's name says."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import ROOT

FILES = sorted((ROOT / "configs" / "accelerate").glob("*.yaml"))

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
        # Else a forward pass waits for the other processes: see test_sharding.py of the TRL backend.
        assert config.fsdp_config["fsdp_reshard_after_forward"] is False
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
