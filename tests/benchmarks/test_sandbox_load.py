"""``benchmarks/sandbox_load.py`` and what it measures with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from places import BENCHMARKS

from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import Job, LocalSandbox
from rstar2_env.sandbox.job import Outcome
from rstar2_env.testing import StubSandbox


def start(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "sandbox_load.py"), *arguments]
    return subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=300, check=False
    )


def run(*arguments: str, **variables: str) -> dict[str, Any]:
    done = start("--json", *arguments, **variables)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def measures(benchmark_named: Callable[[str], ModuleType]) -> Any:
    return benchmark_named("sandbox_measures")


@pytest.mark.slow
def test_every_program_is_measured(measures: Any) -> None:
    figures = run("--calls", "20")["figures"]
    assert [figure["program"] for figure in figures] == list(measures.PROGRAMS)
    for figure in figures:
        assert figure["per_second"] > 0
        assert 0 < figure["p50_ms"] <= figure["p99_ms"]


def test_the_cpu_time_is_that_of_the_programs(measures: Any) -> None:
    with LocalSandbox() as sandbox:
        burn = "import time\nwhile time.process_time() < 0.25: pass\nprint(1)"
        before = measures.cpu_seconds()
        sandbox.run_many([Job(burn)] * 2)
        time.sleep(0.2)
        assert measures.cpu_seconds() - before > 0.4


@pytest.mark.slow
def test_a_load_counts_every_arrival() -> None:
    loads = run("--load", "20", "--seconds", "2", "--set", "workers=2")["loads"]
    assert 15 < loads[0]["calls"] < 80
    assert loads[0]["mean_ms"] > 0


@pytest.mark.slow
def test_a_soak_finds_nothing_grown(tmp_path: Path) -> None:
    soak = run("--soak", "500", TMPDIR=str(tmp_path))["soak"]  # in a folder of its own it sees nobody else's files
    assert (soak["calls"], soak["restarted"]) == (500, False)
    assert (soak["processes_grew"], soak["files_grew"], soak["groups_grew"]) == (0, 0, 0)


def test_a_call_that_goes_wrong_is_no_fast_call(measures: Any) -> None:
    with (
        StubSandbox(plan=[Outcome(ToolStatus.UNAVAILABLE, error_message="it is down")] * 99) as sandbox,
        pytest.raises(measures.BenchError, match="it is down"),
    ):
        measures.measure_sandbox(sandbox, "stub", 8)


def test_an_option_that_is_none_is_named() -> None:
    done = start("--set", "wokers=2")
    assert done.returncode == 2
    assert "wokers" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_tables_name_what_was_measured() -> None:
    done = start("--calls", "8", "--set", "preload=[]")
    assert done.returncode == 0, done.stderr
    assert "calls/s" in done.stdout
    assert "sympy solve" in done.stdout
