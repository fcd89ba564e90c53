"""Selectors: which episodes of a group train."""
