"""``rstar2 doctor`` shows a line for each check, writes JSON and a report, and ends by what it found."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_runner import run
from places import ROOT

MACHINES = ROOT / "tests" / "rstar2_env" / "doctor" / "machines"


def test_this_machine_is_checked(tmp_path: Path) -> None:
    result = run("doctor", "--folder", tmp_path, "--json")
    found = json.loads(result.stdout)
    assert {one["name"] for one in found["checks"]} >= {"torch_build", "aiter", "sandbox_layers", "clock"}
    assert all(set(one) == {"name", "title", "level", "line", "fix"} for one in found["checks"])
    assert found["machine"]["folder"]["path"] == str(tmp_path)
    assert result.exit_code == int(any(one["level"] == "problem" for one in found["checks"]))


@pytest.mark.parametrize("name", ["mi300x", "mi355x", "h100", "cpu"])
def test_the_recorded_state_of_another_machine_is_checked(name: str) -> None:
    result = run("doctor", "--machine", MACHINES / f"{name}.json")
    assert result.exit_code == 0
    assert "0 problems, 0 warnings" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


def test_a_problem_ends_it_with_1_and_says_what_to_do(tmp_path: Path) -> None:
    state = json.loads((MACHINES / "mi300x.json").read_text())
    state["bounds"]["shm_bytes"] = 64 << 20
    file = tmp_path / "state.json"
    file.write_text(json.dumps({"machine": state}))
    result = run("doctor", "--machine", file)
    assert result.exit_code == 1
    assert "problem  shared_memory: " in result.output
    assert re.search(r"^1 problem, 0 warnings, ", result.output, re.MULTILINE)
    assert "-> Start the container with --ipc=host" in result.output


def test_a_report_is_written_once(tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    arguments = ("doctor", "--machine", MACHINES / "mi300x.json", "--report", file)
    assert f"Report written to {file}" in " ".join(run(*arguments, columns=300).output.split())
    assert file.read_text().startswith("# A run on a GPU\n")
    again = run(*arguments)
    assert (again.exit_code, "--overwrite" in again.output) == (2, True)
    assert run(*arguments, "--overwrite").exit_code == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [("no json", "must contain JSON"), ('{"system": {"cpus": "x"}}', "cpus"), ('{"a": 1}', "no option 'a'")],
)
def test_a_state_that_is_none_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "state.json"
    file.write_text(text)
    result = run("doctor", "--machine", file)
    assert result.exit_code == 2
    assert said in result.output
    assert result.output.startswith("Error: ")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = run("doctor", "--machine", tmp_path / "none.json")
    assert result.exit_code == 2
    assert "none.json: No such file" in result.output


def test_a_proof_prints_its_parts_and_writes_the_report(tmp_path: Path) -> None:
    done = run("doctor", "--prove", "--part", "kernels", "--timeout", "120", "--folder", tmp_path)
    assert "kernels" in done.stderr, "the part is named while it runs"
    assert re.search(r"(ok|note|problem) +kernels: ", done.stdout)
    assert "kernels" in (tmp_path / "gpu-report.md").read_text()
