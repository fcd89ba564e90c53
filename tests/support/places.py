"""Where things are, for tests that read files of the repository or of the folder of real inputs beside it."""

from __future__ import annotations

from pathlib import Path

SUPPORT = Path(__file__).resolve().parent
ROOT = SUPPORT.parents[1]
BENCHMARKS = ROOT / "benchmarks"
DOCS = ROOT / "docs"
SHARED = ROOT.parent / "shared"
"""Real inputs; a clone elsewhere lacks them, and tests that want them are skipped."""
