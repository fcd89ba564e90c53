"""Hooks: change a run between its steps."""
