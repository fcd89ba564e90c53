"""Backends: what takes the optimizer step."""
