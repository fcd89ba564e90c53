"""The checks of a run. Each file holds one check, or several checks that read the same figures."""
