"""Text environments over several turns, and what they are made of: spaces, grading, rendering, the vector form."""
