"""Dialects, one file each: the prompt, the format of calls, answers and results, and the stop strings."""

from __future__ import annotations

from rstar2_env.dialects.base import DIALECTS, Dialect, make_dialect

__all__ = ["DIALECTS", "Dialect", "make_dialect"]
