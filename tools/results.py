"""How a file of results was made: ``command``, ``commit`` and ``load``.

A program that writes results takes the three values from ``source``; ``sources`` reads them again. A file of JSON has
them as keys; if it is written in parts, the parts below one of ``PARTS`` may replace them. A file of JSON
lines has them in its first line, and a later line may replace them. Archives have them in ``sources.json`` of their
folder, by name.

``command`` makes the results again, ``commit`` is the code that made them, and ``load`` is what else the machine
computed meanwhile: the load average, the reason why it changes no result, or ``NOT_RECORDED``. Not covered: whether the
command makes the same results (``tests/tools/test_results.py`` tests that the commits are in the history).
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ("command", "commit", "load")
PARTS = ("measured", "suites", "environments", "archives")
"""Keys of a file that is written in parts, each with results of its own."""
ARCHIVED = "sources.json"
NOT_RECORDED = "not recorded"
UNKNOWN = "unknown"


def commit() -> str:
    """Return the first eight digits of the commit of this checkout; ``UNKNOWN`` without a history."""
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    try:
        found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        return UNKNOWN
    return found or UNKNOWN


def machine() -> str:
    """Describe the machine: cores, Python version, load average."""
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} cores, Python {platform.python_version()}, load average {load:.1f} at the end"


def source(command: str = "", load: str = "") -> dict[str, str]:
    """Return the values of ``SOURCE`` for results that were just measured.

    Args:
        command: The command that makes the results again; by default the one that started this process.
        load: Why other work on the machine does not change the results; by default the present load.
    """
    return {"command": command or _typed(), "commit": commit(), "load": load or machine()}


def _typed() -> str:
    program = Path(sys.argv[0]).resolve()
    shown = program.relative_to(ROOT).as_posix() if program.is_relative_to(ROOT) else program.name
    return shlex.join(["python", shown, *sys.argv[1:]])


def sources(path: Path) -> Iterator[dict[str, Any]]:
    """Yield ``command``, ``commit`` and ``load`` of each part of a file of results; what is missing is empty.

    Args:
        path: The file, with JSON, JSON lines or an archive.
    """
    for told in _told(path):
        yield {key: told.get(key, "") for key in SOURCE}


def _told(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".jsonl":
        first, *rest = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        return [{**first, **line} for line in rest] or [first]
    if path.suffix != ".json":
        held = path.with_name(ARCHIVED)
        told = json.loads(held.read_text("utf-8"))["archives"] if held.exists() else {}
        return [told.get(path.name.partition(".")[0], {})]
    told = json.loads(path.read_text("utf-8"))
    if not isinstance(told, dict):
        return [{}]
    return [{**told, **part} for key in PARTS for part in told.get(key, {}).values()] or [told]
