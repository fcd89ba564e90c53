"""A pytest plugin that writes down which tests failed: one id a line, to the file that ``RSTAR2_FAILED_IDS`` names.

Covered: tests that workers ran (``workers.py``), and those in which a worker died.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

FILE = "RSTAR2_FAILED_IDS"


def pytest_runtest_logreport(report: Any) -> None:
    """Called for the parts of every test: its set-up, itself, its end."""
    if report.failed and FILE in os.environ:
        with Path(os.environ[FILE]).open("a") as file:
            file.write(report.nodeid + "\n")
