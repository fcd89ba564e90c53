"""Advantage estimators: turn the rewards of a group into advantages."""
