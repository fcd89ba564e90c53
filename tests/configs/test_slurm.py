"""configs/accelerate/slurm.sh, with stand-ins of Slurm and accelerate that say what they are given."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from places import ROOT

SCRIPT = ROOT / "configs" / "accelerate" / "slurm.sh"
STAND_INS = {
    "scontrol": "printf '%s\\n' first second\n",
    # Starts the command once for each of two machines, as Slurm numbers them.
    "srun": "while [[ $1 == --* ]]; do case $1 in *=*) shift;; *) shift 2;; esac; done\n"
    'for SLURM_NODEID in 0 1; do export SLURM_NODEID; "$@"; done\n',
    "accelerate": "printf '%s|' \"$@\"; echo\n",
}


def start(folder: Path, *words: str, nodes: str = "n[1-2]") -> subprocess.CompletedProcess[str]:
    for name, body in STAND_INS.items():
        (folder / name).write_text(f"#!/usr/bin/env bash\n{body}")
        (folder / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "SLURM_JOB_NODELIST": nodes}
    return subprocess.run(["bash", SCRIPT, *words], capture_output=True, text=True, env=environment, check=False)


def test_every_machine_starts_accelerate_with_its_number_and_the_address_of_the_first(tmp_path: Path) -> None:
    done = start(tmp_path, "a b.yaml", "-m", "rstar2_env.cli", "train", "--out", "a folder")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"launch|--config_file|a b.yaml|--main_process_ip|first|--machine_rank|{number}|"
        "-m|rstar2_env.cli|train|--out|a folder|"
        for number in (0, 1)
    ]


@pytest.mark.parametrize(("words", "nodes"), [(("a.yaml",), "n1"), (("a.yaml", "-m", "x"), "")])
def test_it_says_what_it_needs(words: tuple[str, ...], nodes: str, tmp_path: Path) -> None:
    done = start(tmp_path, *words, nodes=nodes)
    assert done.returncode == 2
    assert "inside a Slurm job" in done.stderr
