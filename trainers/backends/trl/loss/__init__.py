"""The loss in the TRL backend: rows, micro-batches, forward passes, and the objective."""
