"""Samplers: choose the ``reset`` arguments of a step's groups."""
