"""The numbers of an evaluation: counts, summaries and intervals, and how they are printed.

See also ``core/episode_metrics.py``.
"""
