"""Rollout parts, which play the episodes of each group."""
