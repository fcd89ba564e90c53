"""Prepare problems for training: pinned sources, filters that report reasons, mixtures, disjoint splits.

``prepare`` performs all these steps; each filter has its own file and can be used alone.
"""

from __future__ import annotations

from rstar2_env.problems.prepare.lock import UNKNOWN, Lock, Pin, checksum_of
from rstar2_env.problems.prepare.pinned import Shelf
from rstar2_env.problems.prepare.prepared import Prepared, PrepareOptions, SourceOptions, prepare
from rstar2_env.problems.prepare.removed import Removed

__all__ = [
    "UNKNOWN",
    "Lock",
    "Pin",
    "PrepareOptions",
    "Prepared",
    "Removed",
    "Shelf",
    "SourceOptions",
    "checksum_of",
    "prepare",
]
