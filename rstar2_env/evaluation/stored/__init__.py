"""Stored episodes of runs: find them by name, replay them, grade them again."""
