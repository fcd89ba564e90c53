"""Files of configs/ whose episodes servers play, or an engine in each process, run as they stand: `rstar2 launch`."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from chain import free_port
from config_runs import SCALED, check_run
from guesser import ENV_OPTIONS, make_guesser, write_problems
from places import ROOT, SUPPORT
from vllm_serve import needs_vllm

from rstar2_env.core.run_folder import read_run

pytest.importorskip("trl", reason="this trains: the extra 'train'")
pytest.importorskip("httpx", reason="servers need the extra 'remote'")

SERVERS, IN_PROCESS = (ROOT / "configs" / f"{name}.toml" for name in ("vllm_servers", "one_gpu_vllm"))
CORES = sorted(os.sched_getaffinity(0))


def launch(folder: Path, file: Path, *options: str, **more: object) -> subprocess.CompletedProcess[str]:
    """Launch a file's run on cores; ``more`` are further options of it."""
    model = make_guesser(folder / "model", hidden=64)
    problems = write_problems(folder / "problems.jsonl")
    settings = {f"{group}.{name}": value for group, values in SCALED.items() for name, value in values.items()}
    settings |= {"env.holdout": 0.25, "env.dialect_options": ENV_OPTIONS["dialect_options"]}
    settings |= {"threads": 1, "progress": False, **more}
    given = [word for name, value in settings.items() for word in ("--set", f"{name}={json.dumps(value)}")]
    words = ["--config", str(file), "--model", str(model), "--problems", str(problems), "--out", str(folder / "run")]
    return subprocess.run(
        [sys.executable, "-m", "rstar2_env.cli", "launch", "--cpu", *options, "--", *words, *given],
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        check=False,
    )


def with_servers(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Launch the run with a server on each of two cores."""
    devices = ("--serve", ",".join(map(str, CORES[:2])), "--train", str(CORES[-1]), "--port", str(free_port()))
    return launch(folder, SERVERS, *devices, *options)


def check(folder: Path, done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr[-3000:]
    record = json.loads((folder / "run" / "config.json").read_text())
    check_run(SERVERS, folder / "run", record)
    assert len(record["rollout"]["engine_options"]["base_urls"]) == len(CORES[:2])
    assert done.stderr.count("is ready after") == len(CORES[:2])
    # Nobody listens any more, and no weights are left.
    for address in record["rollout"]["engine_options"]["base_urls"]:
        with pytest.raises(OSError, match="refused"):
            urllib.request.urlopen(f"{address}/health", timeout=10)
    versions = {turn.version for entry in read_run(folder / "run").episodes(2) for turn in entry.episode.steps}
    assert versions == {1}


@pytest.mark.slow
def test_servers_are_started_the_run_trains_and_all_end(tmp_path: Path) -> None:
    program = shlex.join([sys.executable, str(SUPPORT / "small_vllm.py")]) + " {model} {port}"
    check(tmp_path, with_servers(tmp_path, "--server-program", program))


@pytest.mark.proof
def test_with_two_real_vllm_servers(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    needs_vllm()
    options = "--dtype float32 --enforce-eager --kv-cache-memory-bytes 67108864 --max-model-len 4096"
    done = with_servers(tmp_path, "--server-options", options)
    check(tmp_path, done)
    record_property("servers", len(CORES[:2]))


@pytest.mark.proof
def test_each_of_two_processes_with_sharded_weights_plays_with_its_own_vllm(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    needs_vllm()
    devices = ("--colocate", "--train", ",".join(map(str, CORES[:2])), "--processes", "2")
    done = launch(tmp_path, IN_PROCESS, *devices, sharding="fsdp2", temperature=1.5, **{"engine.kv_cache_gib": 0.1})
    assert done.returncode == 0, done.stderr[-3000:]
    run = read_run(tmp_path / "run")
    assert run.finished
    trained = [line for line in run.metrics() if "loss" in line]
    assert [line["step"] for line in trained] == [1, 2]
    # Every hand-over was compared on both processes, and what was drawn with its weights is what trains.
    assert max(line["mismatch/logp_difference"] for line in trained) < 1e-3
    assert {turn.version for entry in run.episodes(2) for turn in entry.episode.steps} == {1}
    record_property("distance of engine and trainer", max(line["mismatch/logp_difference"] for line in trained))
