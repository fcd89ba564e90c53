"""Reads files of tool-use traces, as ``rstar2 traces`` writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rstar2_env.core.errors import ConfigurationError, ProblemFormatError


def read_traces(path: str | Path) -> list[dict[str, Any]]:
    """Read a file that ``rstar2 traces`` wrote.

    Raises:
        ConfigurationError: The file cannot be read.
        ProblemFormatError: A line is not a JSON object; the message names the line.
    """
    traces: list[dict[str, Any]] = []
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise ProblemFormatError(f"{path}, line {number}: expected a JSON object, got {line[:60]!r}.")
                traces.append(record)
    except OSError as error:
        raise ConfigurationError(f"The traces {path} cannot be read: {error.strerror}.") from error
    except json.JSONDecodeError as error:
        raise ProblemFormatError(f"{path}, line {number}: not valid JSON: {error.msg}.") from error
    return traces
