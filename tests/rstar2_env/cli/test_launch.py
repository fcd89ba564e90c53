"""``rstar2 launch`` reads devices and the trainer's words before it starts anything, and shows what it would start."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from cli_runner import run
from places import ROOT

from rstar2_env.trainers.launch import devices

pytest.importorskip("torch", reason="trainers need the extra 'train'")

WORDS = ("--", "grpo_roc", "--model", "M")


def test_servers_and_trainers_get_their_devices_and_each_other() -> None:
    result = run("launch", "--serve", "0-3", "--tensor-parallel", "2", "--train", "4-7", "--dry-run", *WORDS)
    assert result.exit_code == 0, result.output
    first, second, trainer = result.stdout.splitlines()
    assert "CUDA_VISIBLE_DEVICES=0,1" in first
    assert "CUDA_VISIBLE_DEVICES=2,3" in second
    assert "--port 8002" in second
    assert "--tensor-parallel-size 2" in second
    assert "CUDA_VISIBLE_DEVICES=4,5,6,7" in trainer
    assert "--nproc_per_node=4" in trainer
    addresses = json.loads(re.search(r"engine.base_urls=(\[.*?\])", trainer)[1])  # type: ignore[index]
    assert addresses == ["http://127.0.0.1:8001", "http://127.0.0.1:8002"]
    assert "engine.weights_dir=" in trainer


def test_several_processes_shard_by_default_and_one_does_not() -> None:
    words = ("--serve", "0", "--dry-run")
    assert "sharding=fsdp2" in run("launch", *words, "--train", "1-2", *WORDS).stdout
    assert "sharding=" not in run("launch", *words, "--train", "1", *WORDS).stdout


@pytest.mark.parametrize("wanted", ["none", "zero2"])
def test_the_sharding_that_the_arguments_name_is_kept(wanted: str) -> None:
    words = ("--serve", "0", "--train", "1-2", "--dry-run", *WORDS, "--set", f"sharding={wanted}")
    trainer = run("launch", *words).stdout.splitlines()[-1]
    assert trainer.count("sharding=") == 1
    assert f"sharding={wanted}" in trainer


@pytest.mark.parametrize(("more", "first_runner"), [((), False), (("--set", "top_p=0.9"), True)])
def test_servers_use_vllms_first_model_runner_only_for_top_p_and_top_k(
    more: tuple[str, ...], first_runner: bool
) -> None:
    server = run("launch", "--serve", "0", "--train", "1", "--dry-run", *WORDS, *more).stdout.splitlines()[0]
    assert ("VLLM_USE_V2_MODEL_RUNNER=0" in server) is first_runner


def test_a_folder_of_weights_that_the_run_names_is_kept() -> None:
    words = ("--serve", "0", "--train", "1", "--dry-run", "--", "--config", ROOT / "configs" / "vllm_servers.toml")
    trainer = run("launch", *words, "--model", "M").stdout.splitlines()[-1]
    assert "weights_dir" not in trainer


def test_colocated_engines_sleep_on_accelerators_and_not_on_cores() -> None:
    shown = run("launch", "--colocate", "--train", "0-7", "--dry-run", *WORDS).stdout
    assert len(shown.splitlines()) == 1
    assert "engine.sleep=true" in shown
    core = str(min(os.sched_getaffinity(0)))
    words = ("--cpu", "--colocate", "--train", core, "--dry-run", "--", "--config")
    assert "engine.sleep=false" in run("launch", *words, ROOT / "configs" / "one_gpu_vllm.toml", "--model", "M").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--serve", "0-3", "--train", "3", *WORDS), "Device 3 is in both --serve and --train"),
        (("--serve", "0-2", "--tensor-parallel", "2", "--train", "3", *WORDS), "cannot be divided into engines with 2"),
        (("--train", "3", *WORDS), "No devices are given for inference servers"),
        (("--colocate", "--serve", "0", *WORDS), "omit --serve"),
        (("--colocate", "--tensor-parallel", "2", *WORDS), "one device per engine"),
        (("--colocate", "--processes", "3", "--train", "0,1", *WORDS), "(--processes) need at least as many devices"),
        (("--colocate", "--", "grpo_roc"), "No model is named"),
        (("--colocate", "--", "grpo_rock", "--model", "M"), "grpo_roc"),
        (("--colocate", *WORDS, "--set", "nope=1"), "no option 'nope'"),
        (("--colocate", *WORDS, "--lr", "-1"), "--lr must be a positive number, not -1.0."),
        (("--colocate", *WORDS, "--seed", "1", "--seed", "2"), "--seed 1 and --seed 2 disagree"),
        (("--colocate", *WORDS, "--set", "engine=transformers"), "omit --set engine"),
        (("--serve", "x", *WORDS), "does not name devices"),
    ],
)
def test_a_mistake_is_one_line_before_anything_starts(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    result = run("launch", *words)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("installed", "message"),
    [(True, "This machine has no accelerator"), (False, "An inference server needs the extra")],
)
def test_servers_that_cannot_start_here_are_refused_before_they_start(
    installed: bool, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(devices, "_NODES", (str(tmp_path / "kfd"),))
    monkeypatch.setattr(devices, "find_spec", lambda name: installed or None)
    result = run("launch", "--serve", "0", "--train", "1", *WORDS)
    assert result.exit_code == 2
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []
