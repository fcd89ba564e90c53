"""What an expression is worth at a point: exactly where it is rational, else an interval that holds it."""
