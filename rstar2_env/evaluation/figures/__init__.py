"""Figures of an evaluation: counts, summaries, intervals, and their text; see also ``core/episode_metrics.py``."""
