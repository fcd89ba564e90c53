"""Exports the weights of a run to a transformers folder and to a hub. Importing this package does not load torch."""
