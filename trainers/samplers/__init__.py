"""Samplers: choose with which ``reset`` arguments the groups of a step start."""
