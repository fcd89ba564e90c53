"""``rstar2 sandbox bench`` and what it measures with."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from rstar2_env.cli.sandbox import app
from rstar2_env.core.status import ToolStatus
from rstar2_env.sandbox import LocalSandbox, bench
from rstar2_env.sandbox.job import Outcome
from rstar2_env.testing import StubSandbox


def run(*arguments: str) -> dict[str, object]:
    result = CliRunner().invoke(app, ["bench", "--json", *arguments])
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    return found


@pytest.mark.slow
def test_every_program_is_measured() -> None:
    figures = run("--calls", "20")["figures"]
    assert isinstance(figures, list)
    assert [figure["program"] for figure in figures] == list(bench.PROGRAMS)
    for figure in figures:
        assert figure["per_second"] > 0
        assert 0 < figure["p50_ms"] <= figure["p99_ms"]


def test_the_cpu_time_is_that_of_the_programs() -> None:
    with LocalSandbox() as sandbox:
        burn = "import time\nwhile time.process_time() < 0.25: pass\nprint(1)"
        before = bench.cpu_seconds()
        sandbox.run_many([bench.Job(burn)] * 2)
        bench.time.sleep(0.2)
        assert bench.cpu_seconds() - before > 0.4


@pytest.mark.slow
def test_a_load_counts_every_arrival() -> None:
    loads = run("--load", "20", "--seconds", "2", "--set", "workers=2")["loads"]
    assert isinstance(loads, list)
    assert 15 < loads[0]["calls"] < 80
    assert loads[0]["mean_ms"] > 0


@pytest.mark.slow
def test_a_soak_finds_nothing_grown() -> None:
    soak = run("--soak", "500")["soak"]
    assert isinstance(soak, dict)
    assert (soak["calls"], soak["processes_grew"], soak["restarted"]) == (500, 0, False)


def test_a_call_that_goes_wrong_is_no_fast_call() -> None:
    with (
        StubSandbox(plan=[Outcome(ToolStatus.UNAVAILABLE, error_message="it is down")] * 99) as sandbox,
        pytest.raises(bench.BenchError, match="it is down"),
    ):
        bench.measure_sandbox(sandbox, "stub", 8)


def test_an_option_that_is_none_is_named() -> None:
    result = CliRunner().invoke(app, ["bench", "--set", "wokers=2"])
    assert result.exit_code != 0
    assert "wokers" in result.output
