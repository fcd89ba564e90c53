"""The loss on TRL: rows, micro-batches, forward passes, and the objective."""
