"""The index of one run: where each episode is in the run's files, and the values for tables and searches.

The index stores positions, numbers, and shortened questions and answers. Its full-text index finds episodes by words,
but does not store their texts. Not covered: the queries (``rstar2_env.view.queries``).
"""

from __future__ import annotations

from rstar2_env.view.index.run_index import RunIndex

__all__ = ["RunIndex"]
