"""Dialects: how a policy writes calls and answers as text, and how results are shown to it; one file each."""

from __future__ import annotations

from rstar2_env.dialects.base import DIALECTS, Dialect, make_dialect

__all__ = ["DIALECTS", "Dialect", "make_dialect"]
