"""A file of configs/ whose episodes servers play runs as it stands: `rstar2 launch` starts them."""

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

FILE = ROOT / "configs" / "vllm_servers.toml"
CORES = sorted(os.sched_getaffinity(0))


def launch(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Launch the file's run with servers on two cores."""
    model = make_guesser(folder / "model", hidden=64)
    problems = write_problems(folder / "problems.jsonl")
    settings = {f"{group}.{name}": value for group, values in SCALED.items() for name, value in values.items()}
    settings |= {"env.holdout": 0.25, "env.dialect_options": ENV_OPTIONS["dialect_options"]}
    settings |= {"threads": 1, "progress": False}
    given = [word for name, value in settings.items() for word in ("--set", f"{name}={json.dumps(value)}")]
    words = ["--config", str(FILE), "--model", str(model), "--problems", str(problems), "--out", str(folder / "run")]
    cores = ",".join(map(str, CORES[:2]))
    command = [sys.executable, "-m", "rstar2_env.cli", "launch", "--cpu", "--serve", cores, "--train", str(CORES[-1])]
    return subprocess.run(
        [*command, "--port", str(free_port()), *options, "--", *words, *given],
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        check=False,
    )


def check(folder: Path, done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr[-3000:]
    record = json.loads((folder / "run" / "config.json").read_text())
    check_run(FILE, folder / "run", record)
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
    check(tmp_path, launch(tmp_path, "--server-program", program))


@pytest.mark.proof
def test_with_two_real_vllm_servers(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    needs_vllm()
    options = "--dtype float32 --enforce-eager --kv-cache-memory-bytes 67108864 --max-model-len 4096"
    done = launch(tmp_path, "--server-options", options)
    check(tmp_path, done)
    record_property("servers", len(CORES[:2]))
