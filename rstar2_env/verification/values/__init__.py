"""The value of an expression at a point: exact if it is rational, otherwise a ball that contains it."""
