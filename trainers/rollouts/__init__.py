"""Rollouts: play the episodes of each group."""
