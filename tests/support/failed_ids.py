"""A pytest plugin that writes down which tests failed: one id a line, to the file that ``RSTAR2_FAILED_IDS`` names.

``RSTAR2_PASSED_IDS`` names a file for those that passed. Covered: tests that workers ran (``workers.py``), and those in
which a worker died.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

FAILED = "RSTAR2_FAILED_IDS"
PASSED = "RSTAR2_PASSED_IDS"


def pytest_runtest_logreport(report: Any) -> None:
    """Called for the parts of every test: its set-up, itself, its end."""
    variable = FAILED if report.failed else PASSED if report.passed and report.when == "call" else ""
    if variable in os.environ:
        with Path(os.environ[variable]).open("a") as file:
            file.write(report.nodeid + "\n")
