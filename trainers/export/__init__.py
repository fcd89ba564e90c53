"""Exports a run's weights to an ordinary transformers folder and to a hub. Importing it does not load torch."""
