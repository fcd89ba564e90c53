"""One training step without torch: collect, score, select, and measure."""
