"""Figures of an evaluation: counts, summaries, intervals, and their text; see also the table in ``core/figures.py``."""
