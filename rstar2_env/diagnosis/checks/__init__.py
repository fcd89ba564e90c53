"""The checks for faults of a run. Each file has one check, or several checks that read the same data."""
