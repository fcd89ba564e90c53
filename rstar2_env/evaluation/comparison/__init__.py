"""Comparisons of evaluations, paired by problem: differences, tests, curves, tables, a picture."""
