"""Weights of a run as an ordinary folder of transformers, and on a hub. Nothing here loads torch on import."""
