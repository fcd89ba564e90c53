"""Checks of a run: each file holds one check, or a few that look at the same figures."""
