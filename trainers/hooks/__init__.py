"""Hooks: objects that change a run between its steps."""
