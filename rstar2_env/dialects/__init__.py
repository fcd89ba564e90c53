"""How a policy writes calls and answers as text, and how results are shown to it: one file each."""

from __future__ import annotations

from rstar2_env.dialects.base import Dialect, dialects, make_dialect

__all__ = ["Dialect", "dialects", "make_dialect"]
