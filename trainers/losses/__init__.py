"""The loss: a sum of terms, an aggregation over rows, and a correction for engine-trainer mismatch."""
