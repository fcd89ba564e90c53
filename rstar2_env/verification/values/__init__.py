"""The value of an expression at a point: exact if it is rational, otherwise an interval that contains it."""
