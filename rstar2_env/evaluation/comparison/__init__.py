"""Evaluations against each other, paired by problem: differences, tests, curves, tables, a picture."""
