"""Figures of an evaluation: counts, summaries, intervals, and their text."""
