"""The kinds of stages, one file each."""
