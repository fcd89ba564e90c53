"""The version of this distribution, which pyproject.toml reads from this file, and a comparison of versions."""

from __future__ import annotations

import re

__version__ = "0.1.0"


def at_least(version: str, least: str) -> bool:
    """Whether a version such as ``"7.2.1"`` or ``"0.31.0+rocm721"`` is ``least`` or newer; false for other texts."""
    found = _numbers(version)
    return bool(found) and found >= _numbers(least)


def _numbers(version: str) -> tuple[int, ...]:
    matched = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, matched[0].split("."))) if matched else ()
