"""Judges of chains of thought, by name; each is one file of this package."""
