"""Playing the episodes of an evaluation, and the file that records them."""
