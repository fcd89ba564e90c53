"""Decide whether two trees, or two texts, are the same answer."""
