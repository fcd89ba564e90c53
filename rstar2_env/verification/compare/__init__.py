"""Decides whether two parsed answers, or two texts, are the same answer."""
