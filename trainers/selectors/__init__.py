"""Selectors: choose the episodes of a group to train on."""
