"""Selectors: choose which episodes of a group are trained on."""
