"""The report is the form in the documents, completed with results of the doctor and metrics of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from places import DOCS
from run_sample import write_run

from rstar2_env.core.run_folder import read_run
from rstar2_env.doctor.examine import examine
from rstar2_env.doctor.machine import MachineState
from rstar2_env.doctor.report import OPEN, report

MACHINES = Path(__file__).parent / "machines"


@pytest.fixture(scope="module")
def mi300x() -> MachineState:
    return MachineState.read((MACHINES / "mi300x.json").read_text())


def test_the_page_is_the_empty_form() -> None:
    fresh = report()
    assert (DOCS / "gpu-report.md").read_text() == fresh, (
        'write it again: python -c "from rstar2_env.doctor.report import report; print(report(), end=str())" '
        "> docs/gpu-report.md"
    )


def test_the_machine_is_filled_in(mi300x: MachineState) -> None:
    text = report(mi300x, examine(mi300x))
    for shown in (
        "8 x AMD Instinct MI300X (gfx942, 206 GB)",
        "rocm build 7.2.53211",
        "`VLLM_ROCM_USE_AITER`",
        "| ok | rccl |",
    ):
        assert shown in text
    parts = text.split("## ")
    filled = [part for part in parts if part.startswith(("The machine", "The software", "Variables", "Checks"))]
    assert len(filled) == 4
    assert OPEN not in "".join(filled)


def test_the_state_in_a_report_can_be_checked_anywhere(mi300x: MachineState) -> None:
    text = report(mi300x).partition("```json\n")[2].partition("```")[0]
    assert MachineState.from_record(json.loads(text)) == mi300x


def test_the_figures_of_a_run_are_filled_in(tmp_path: Path, mi300x: MachineState) -> None:
    write_run(tmp_path)
    text = report(mi300x, (), read_run(tmp_path))
    assert "| steps | … |" not in text
    assert "| steps | " in text


def test_a_cell_cannot_break_its_table() -> None:
    text = report(MachineState(environment={"NCCL_DEBUG": "a|b\nc"}))
    assert "| `NCCL_DEBUG` | `a\\|b c` |" in text
