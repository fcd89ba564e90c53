"""The folder of a small run."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_sample import write_run


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    write_run(tmp_path / "run")
    return tmp_path / "run"
