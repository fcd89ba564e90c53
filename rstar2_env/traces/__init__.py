"""Tool-use traces for a cold start, and the deliberate mistakes in them."""
