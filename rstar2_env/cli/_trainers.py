"""Imports ``rstar2_env.trainers`` on demand and by name, since the rest of rstar2_env must not depend on trainers."""

from __future__ import annotations

import importlib
from typing import Any


def import_trainers(name: str = "") -> Any:
    """Import and return ``rstar2_env.trainers``, or a module in it by its dotted name."""
    return importlib.import_module(f"rstar2_env.trainers.{name}" if name else "rstar2_env.trainers")
