"""A training run with TRL: building the run, checks of its options, hooks, steps, and stopping."""
