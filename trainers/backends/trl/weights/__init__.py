"""The engine of a run and its weights: weight sync, stale copies, adapters."""
