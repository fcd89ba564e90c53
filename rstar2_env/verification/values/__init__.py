"""Evaluates expressions at a point: exactly if the value is rational, otherwise as a ball (interval) around it."""
