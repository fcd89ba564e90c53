"""What the tests of verification share: where the labelled pairs are, and whether a process has ended."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from places import SHARED


def _ended(pid: int, seconds: float = 10.0) -> bool:
    """Whether a process ends within that time; one that only waits to be collected has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def ended() -> Callable[[int], bool]:
    """A function that says whether a process ends within ten seconds."""
    return _ended


def _labelled(name: str) -> list[dict[str, Any]]:
    path = SHARED / "verify" / name
    if not path.is_file():
        pytest.skip(f"the labelled pairs are not at {path}")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="session")
def labelled() -> list[dict[str, Any]]:
    """The labelled pairs of public test suites; skips where they are not."""
    return _labelled("cases.jsonl")


@pytest.fixture(scope="session")
def labelled2() -> list[dict[str, Any]]:
    """The labelled pairs as models write them, and hacks; skips where they are not."""
    return _labelled("cases2.jsonl")


@pytest.fixture(scope="session")
def labelled3() -> list[dict[str, Any]]:
    """The labelled pairs by cause, written for unseen rules; skips where they are not."""
    return _labelled("cases3.jsonl")


@pytest.fixture(scope="session")
def college_golds() -> list[str]:
    """The gold answers of college_math; skips where they are not."""
    path = SHARED / "data" / "college_math.jsonl"
    if not path.is_file():
        pytest.skip(f"the problems are not at {path}")
    return [json.loads(line)["answer"] for line in path.read_text(encoding="utf-8").splitlines()]
