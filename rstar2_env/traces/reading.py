"""Reads files of tool-use traces, as ``rstar2 traces`` writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rstar2_env.problems.files.jsonl import read_objects


def read_traces(path: str | Path) -> list[dict[str, Any]]:
    """Read a file that ``rstar2 traces`` wrote.

    Raises:
        ConfigurationError: The file cannot be read.
        ProblemFormatError: A line is not a JSON object; the message names the line.
    """
    return list(read_objects(Path(path)))
