"""The index over one run: where each of its episodes stands in its files, and what tables and searches need of it.

It holds places and figures, and no episode's text but for the index of words. Not covered: what is asked of it
(``rstar2_env.view.queries``).
"""

from __future__ import annotations

from rstar2_env.view.index.run_index import RunIndex

__all__ = ["RunIndex"]
