"""A pytest plugin that writes down which tests failed: one id a line, to the file that ``RSTAR2_FAILED_IDS`` names.

Covered: tests that workers of pytest-xdist ran, and those in which a worker died.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

FILE = "RSTAR2_FAILED_IDS"


def pytest_runtest_logreport(report: Any) -> None:
    """Called for the parts of every test: its set-up, itself, its end."""
    # A worker's reports come to the process that started it too, which writes them.
    if report.failed and FILE in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(os.environ[FILE]).open("a") as file:
            file.write(report.nodeid + "\n")
