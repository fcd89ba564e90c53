"""From text to tree: cleaning, tokens, the grammar, units, and where in a response the answer stands."""
