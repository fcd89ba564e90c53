"""What a launcher's words say of devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from rstar2_env.core.errors import ConfigurationError
from rstar2_env.trainers.pipeline.spread import Spread, spread_of

FSDP = "configs/accelerate/mi300x_8x8_fsdp2.yaml"


@pytest.mark.parametrize(
    ("launch", "spread"),
    [
        (None, Spread(1)),
        ("python", Spread(1)),
        ("torchrun --nproc_per_node 8", Spread(8)),
        ("torchrun --nnodes=8 --nproc-per-node=8 --rdzv_backend c10d", Spread(64)),
        ("rstar2 launch --colocate --train 0-7 --", Spread(8, sharding="fsdp2")),
        ("rstar2 launch --cpu --colocate --train 0-7 --", Spread(8)),
        ("rstar2 launch --serve 1 --train 0 --", Spread(1, 1)),
        ("rstar2 launch --serve 0-3 --tensor-parallel 2 --train 4,6 --", Spread(2, 4, 2, "fsdp2")),
        (f"accelerate launch --config_file {FSDP}", Spread(64, sharding="fsdp2")),
        ("accelerate launch --config_file configs/accelerate/mi300x_1x8_deepspeed.yaml", Spread(8, sharding="zero2")),
        ("accelerate launch --num_processes 4", Spread(4)),
        (f"accelerate launch --config_file {FSDP} --num_processes 4", Spread(4, sharding="fsdp2")),
        (f"bash configs/accelerate/slurm.sh {FSDP}", Spread(64, sharding="fsdp2")),
        ("my_launcher", Spread(None)),
    ],
)
def test_it_is_read(launch: str | None, spread: Spread) -> None:
    assert spread_of(launch) == spread


@pytest.mark.parametrize(
    "launch", ["torchrun --nproc_per_node gpu", "accelerate launch --num_processes", "rstar2 launch --train x --"]
)
def test_what_names_no_devices_is_refused(launch: str) -> None:
    with pytest.raises(ConfigurationError):
        spread_of(launch)


def test_a_configuration_that_divides_nothing(tmp_path: Path) -> None:
    (tmp_path / "plain.yaml").write_text("distributed_type: MULTI_GPU\nnum_processes: 2\n")
    assert spread_of(f"accelerate launch --config_file {tmp_path / 'plain.yaml'}") == Spread(2)
